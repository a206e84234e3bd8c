"""Calls of a remote service, many open at once."""
