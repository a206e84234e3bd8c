"""The cost of a page in a browser to a run."""
