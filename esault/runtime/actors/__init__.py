"""Thespian, and all that keeps it in bounds. No other folder imports it."""
