"""One topology on each engine."""
