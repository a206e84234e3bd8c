"""The run: the driver, its parts, and the commands that it is given."""
