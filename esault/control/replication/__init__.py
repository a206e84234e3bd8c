"""Units with active replicas."""
