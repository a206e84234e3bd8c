"""A channel that keeps what a route sends."""

from __future__ import annotations

from esault.payload.codec import Codec
from esault.payload.column import plain

codec = Codec()


class RecordingChannel:
    """`waiting`: frames that its socket has not taken."""

    def __init__(self, waiting=0):
        self.rows, self.calls, self.queue = [], 0, [None] * waiting

    def add(self, lineage, input, keys, values, ids, now):
        self.calls += 1
        self.rows += zip(plain(keys), plain(values), ids or plain(values))

    def add_whole(self, lineage, input, rows, keys, values, ids, now):
        keys, values = codec.unpack(codec.pack((keys, values)))
        self.add(lineage, input, keys, values, ids, now)
