"""The queries of Nexmark."""
