"""OrientStream's experiments."""
