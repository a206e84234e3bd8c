"""The process of the driver."""
