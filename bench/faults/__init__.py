"""Faults under load, and the rows that are lost or doubled by them."""
