"""Checkpoints of a run: which are complete, and going back to one."""
