"""Latency at given rates."""
