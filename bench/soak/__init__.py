"""A run for hours: what it holds must not grow."""
