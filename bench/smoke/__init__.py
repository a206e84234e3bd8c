"""A guard of the data path by counts of executed code."""
