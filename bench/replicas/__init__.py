"""The use and the cost of copies."""
