"""The cost of many sub-units."""
