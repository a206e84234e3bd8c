"""Several hosts: keys, the connections between hosts, and the node that offers a host's slots.

Each host has an actor system of its own on loopback; what leaves a host goes over TLS 1.3, with one key for the whole cluster on
both ends (docs/explanation/security.md). Nothing here knows Thespian: the actors that sit at the ends of these connections are
`runtime.remote.host_agent` and `runtime.driver.driver_actor`.

The one invariant: nothing that a peer sends is looked at before it has shown that it holds the cluster's key, and nothing it
sends after that is executed.
"""
