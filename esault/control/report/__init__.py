"""From what the driver knows to what people read."""
