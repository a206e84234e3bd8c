"""Faults to a run on a standalone cluster of Spark, and the tuples that are lost or doubled by them."""
