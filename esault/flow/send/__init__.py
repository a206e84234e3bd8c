"""What leaves a sub-unit: outlets, routes, and sinks in its process."""
