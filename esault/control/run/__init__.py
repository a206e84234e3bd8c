"""The run: the driver, what it waits for, and the commands that it is given."""
