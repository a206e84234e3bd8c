"""The same experiment on real actors."""
