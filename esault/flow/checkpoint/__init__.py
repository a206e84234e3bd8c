"""Checkpoints in one sub-unit: where the cut goes through its streams, and what of its state belongs to it.

The protocol is in docs/explanation/checkpoints.md. `Alignment` finds the moment at which all that stood before the cut has been processed and nothing behind it;
`Snapshot` writes the state of that moment bit by bit while tuples are processed again.
"""
