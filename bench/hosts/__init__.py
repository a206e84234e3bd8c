"""One host and three."""
