"""Checkpoints on disk: files of state, and the manifests that say which of them belong together."""
