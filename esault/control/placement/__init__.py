"""Slots, hosts, and which sub-unit goes where."""
