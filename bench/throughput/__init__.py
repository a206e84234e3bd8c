"""Tuples a second, and peers beside."""
