"""The policies by name: the papers' own, what engines of today do, and `auto`."""
