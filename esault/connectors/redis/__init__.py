"""Streams of Redis as sources and sinks, and the connection that they share. Loads redis-py when asked, never before."""
