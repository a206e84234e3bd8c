"""Streams of NATS JetStream as sources and sinks, and the connection that they share. Loads nats-py when asked, never before."""
