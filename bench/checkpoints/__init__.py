"""The cost of checkpoints."""
