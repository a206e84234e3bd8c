"""Frames: the many tuples that one row of Spark's carries, and where they are collected.

A row is (group, frame). The frame is MessagePack of a tuple whose first item is one of the kinds below; so Spark moves thousands
of tuples at a time and knows nothing of keys and values.

    READ      unit, part, first row, position or None, rows, [(row, due)], position behind or None, now
    CONTROL   end, {unit: now} of pulses, [(spout, part)] of parts that have ended, now
    DATA      sender, place, now, target, [(input, due, keys, values, ids)] packed once more: frames are put in order before their
              rows are read, so that those of one frame are there at a time
    WORD      way, watermark or None for idle, see `event_time`, now
    PULSE     now
    END       now
    COUNTS    {unit: what was counted}, {(unit, part): (rows, position)} read, whether this is the end
    HANDLE    sink, what it said in `prepare`

`now` is the time of the batch, which stands in its offset. A batch that is computed again has the same one, and what it sends is the
same, byte for byte: if a worker is lost after some receivers have its rows, the others get the same ones from another worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from esault.errors import PayloadError
from esault.flow.channel.lineage import Lineage
from esault.payload.codec import Codec, explain
from esault.payload.column import is_array
from esault.payload.column_wire import wired
from esault.spark.engine.dictionary_encoding import decoded, encoded

__all__ = [
    "CONTROL",
    "COUNTS",
    "DATA",
    "DEAD",
    "END",
    "FRAME_ROWS",
    "HANDLE",
    "PULSE",
    "READ",
    "WAKE",
    "WORD",
    "Outbox",
    "Port",
    "batches_of",
    "in_order",
    "is_between",
    "time_of",
]

READ, CONTROL, DATA, WORD, PULSE, END, COUNTS, HANDLE, WAKE, DEAD = range(10)

#: tuples of a frame at most, and of the first one, which tells how large they are
FRAME_ROWS, FIRST_ROWS = 8192, 512
#: bytes of a frame that are aimed at
FRAME_BYTES = 1 << 20

#: a row of Spark's
Sealed = tuple[int, bytes]


def in_order(frames: list[Any]) -> list[Any]:
    """As they were sent, sender by sender, with words between rows; last words and the pulse behind all data, the end behind all."""
    return sorted(frames, key=_place)


def _place(frame: Any) -> tuple[int, str, tuple[int, ...]]:
    kind = frame[0]
    if kind == DATA:
        return kind, frame[1], frame[2]
    return (DATA, frame[4], frame[5]) if is_between(frame) else (kind, "", ())


def is_between(frame: Any) -> bool:
    """Return whether this is a word that was said between rows."""
    return frame[0] == WORD and len(frame) > 4


def batches_of(codec: Codec, packed: bytes) -> list[tuple[Any, ...]]:
    """Return the (input, due, keys, values, ids) that a frame of data holds, packed."""
    return [(i, due, decoded(keys), decoded(values), ids) for i, due, keys, values, ids in codec.unpack(packed)]


def time_of(frame: Any) -> float:
    """Return the time of the batch, as a frame for a task has it."""
    return float(frame[3] if frame[0] in (DATA, WORD) else frame[1])


class Outbox:
    """The rows that one process sends in one batch."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._sealed: list[Sealed] = []
        self._ports: list[Port] = []
        self._sender = ""
        self._base = self._number = 0
        self._now = 0.0

    def begin(self, sender: str, base: int, now: float) -> None:
        """Frames are from this sender now, in the order of `base` and then of their making; `now`: the time of the batch."""
        self._sender, self._base, self._number, self._now = sender, base, 0, now
        for port in self._ports:
            port.begin()

    def port(self, unit: str, group: int, target: str) -> Port:
        """A way to a task or a sink, for rows of `unit`."""
        port = Port(self, unit, group, target)
        self._ports.append(port)
        return port

    def seal(self, unit: str, group: int, target: str, batches: list[Any]) -> int:
        """Make a frame of data; its bytes. Raises PayloadError."""
        place = (self._base, self._number)
        self._number += 1
        try:
            ready = [(i, due, encoded(keys), encoded(values), ids) for i, due, keys, values, ids in batches]
            return self.put(group, (DATA, self._sender, place, self._now, target, self.codec.pack(ready)))
        except PayloadError:
            for _, _, keys, values, _ in batches:
                for key, value in zip(keys, values):
                    reason = explain(key) or explain(value)
                    if reason is not None:
                        raise PayloadError(
                            f"unit {unit!r} emitted a tuple with key {key!r} whose value is refused: {reason}"
                        ) from None
            raise

    def say(self, groups: Iterable[int], way: str, word: Any, between: bool) -> None:
        """Say a word of time to tasks: `between` the rows that were sent and those to come, or behind all of the batch."""
        frame: Any = (WORD, way, word, self._now)
        if between:
            for port in self._ports:
                port.flush()
            frame = (*frame, self._sender, (self._base, self._number))
            self._number += 1
        for group in groups:
            self.put(group, frame)

    def put(self, group: int, frame: Any) -> int:
        """Send a frame; its bytes."""
        packed = self.codec.pack(frame)
        self._sealed.append((group, packed))
        return len(packed)

    def pop_sealed(self, flush: bool = False) -> Iterator[Sealed]:
        """Return what is ready; with `flush` all."""
        if flush:
            for port in self._ports:
                port.flush()
        sealed, self._sealed = self._sealed, []
        return iter(sealed)


class Port:
    """An object with the interface of a channel (for routes) and of a sink writer (for outlets)."""

    #: of a channel: frames that wait; there are none
    queue: Sequence[Any] = ()

    def __init__(self, outbox: Outbox, unit: str, group: int, target: str) -> None:
        self._outbox = outbox
        self._unit = unit
        self._group = group
        self._target = target
        self.takes_arrays = True
        self._batches: list[Any] = []
        self._rows = 0
        self._most = FIRST_ROWS

    def begin(self) -> None:
        """A batch begins: how large its frames are does not follow from the batch before, which another worker may have had."""
        self._most = FIRST_ROWS

    def add(
        self,
        lineage: Lineage,
        input: int,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        now: float,
    ) -> None:
        """Append rows."""
        if len(keys) > self._most:
            most = self._most
            for start in range(0, len(keys), most):
                part = slice(start, start + most)
                self.add(lineage, input, keys[part], values[part], None if ids is None else ids[part], now)
            return
        last = self._batches[-1] if self._batches else None
        fits = last is not None and last[0] == input and last[1] == lineage.due and type(last[2]) is list
        if last is None or not fits or type(last[3]) is not list:
            last = [input, lineage.due, [], [], None if ids is None else []]
            self._batches.append(last)
        last[2].extend(keys)
        last[3].extend(values)
        if ids is not None:
            last[4].extend(ids)
        self._grown(len(keys))

    def add_whole(
        self, lineage: Lineage, input: int, rows: int, keys: Any, values: Any, ids: Sequence[str] | None, now: float
    ) -> None:
        """Append columns as `wired` gives them."""
        self._batches.append((input, lineage.due, keys, values, ids))
        self._grown(rows)

    def write(self, lineage: Lineage, keys: Any, values: Any, ids: Sequence[str] | None, now: float) -> None:
        """Rows for a sink."""
        if is_array(keys) or is_array(values):
            self.add_whole(lineage, 0, len(keys), wired(keys), wired(values), ids, now)
        else:
            self.add(lineage, 0, keys, values, ids, now)

    def _grown(self, rows: int) -> None:
        self._rows += rows
        if self._rows >= self._most:
            self.flush()

    def flush(self) -> None:
        """Make a frame of what is there."""
        batches = self._batches
        if batches:
            rows, self._batches, self._rows = self._rows, [], 0
            size = self._outbox.seal(self._unit, self._group, self._target, batches)
            self._most = max(1, min(FRAME_ROWS, FRAME_BYTES * rows // size))
