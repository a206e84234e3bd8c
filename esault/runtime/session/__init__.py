"""A run from the side of the command: checks, start, watching, the end, and the control socket."""
