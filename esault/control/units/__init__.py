"""Units and the changes of their tables while tuples flow."""
