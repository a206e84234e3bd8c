"""Sub-units: the loop of one part of a unit, without its sockets."""
