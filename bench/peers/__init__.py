"""Engines beside eSault: their environments, and the workloads as their users would write them."""
