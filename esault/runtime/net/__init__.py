"""Sockets of the data path: within a host, and with TLS between hosts."""
