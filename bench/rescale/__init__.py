"""A live change beside stop and start."""
