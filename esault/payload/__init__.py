"""Keys, values and states: what they may hold, and how that looks in bytes. MessagePack with a few types more.

For code that sends or keeps values: the data path, sinks, checkpoints. The one invariant: what `pack` takes `unpack` gives
back, sequences as tuples; bytes of any origin give a value or a FrameError, and nothing is ever executed.
"""
