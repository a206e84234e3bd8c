"""Runs from Python: `run` to the end, `start` in the background."""
