"""The control path: sub-units and their senders, the beginning and the end of a run, and the changes in between.

Plain cores that get messages and `now` passed in and leave messages in an outbox; they do no I/O and know neither
actors nor sockets. `runtime` and `testing` drive them. The one invariant: every hash range of a unit has exactly one
owner in the table that its senders are given.
"""
