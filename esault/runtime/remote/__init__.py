"""Hosts other than the driver's: the agent there, and the connections to it."""
