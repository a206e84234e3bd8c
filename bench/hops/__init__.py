"""The time of a tuple, hop by hop."""
