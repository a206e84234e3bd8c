"""Slots, hosts, and the choice of a place for each sub-unit."""
