"""The actors and the channels: a topology on this machine's processes.

The only room (with `cluster`) that knows Thespian and sockets. Which actors share a process, and why:

- the driver and its units share one: a unit says little, but units say much of it to each other while a run is
  wired or a sub-unit replaced, and between processes each word would cost half a millisecond;
- the keeper has one of its own, without a thread or a socket, since it forks all the others;
- each sub-unit and each ack server has one of its own: the actor in the main thread, its data loop in a second one.

The one invariant: whatever ends a run, no process, no port and no file of it stays.
"""
