"""Loads and topologies that several benches run."""
