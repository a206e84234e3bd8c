"""The cost of each thing beside the data."""
