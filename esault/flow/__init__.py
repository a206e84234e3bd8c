"""The data path: how tuples get from one sub-unit to the next. Plain cores, no I/O.

This room owns what a sub-unit does with tuples: `routing/` (which sub-unit, which element), `delivery/` (roots, acks,
replays), frames and channels, the codec that values and state travel in, elements and their operators. Time, frames
and control messages are passed in; what is to be sent goes out through the two ports of `wire`.

`runtime/` and `testing/` drive it. It imports `topology`, `messages` and `errors`, never `control/`, and neither
thespian nor a socket: the two paths meet only in messages.

Its one invariant: of a sender's tuples with one key, each reaches the one owner of that key, in order.
"""
