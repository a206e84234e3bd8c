"""Kills of processes of each sink as they prepare and commit."""
