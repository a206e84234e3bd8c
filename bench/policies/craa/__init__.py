"""CRAA's experiments."""
