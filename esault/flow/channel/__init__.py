"""Channels between sub-units: frames, the two ends of a channel, and the columns that travel."""
