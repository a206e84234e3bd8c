"""Policies of scaling: the papers' claims, all on all loads, the simulator beside real actors."""
