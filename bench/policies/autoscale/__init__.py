"""AUTOSCALE's experiment."""
