"""The way out of a sub-unit: outlets, routes, and sinks in its process."""
