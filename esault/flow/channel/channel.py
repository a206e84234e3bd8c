"""Channels: the two ends of the way from one sub-unit to another.

The sending end collects rows into batches and batches into numbered frames, and keeps what the link does not
take. The receiving end sees that nothing is read twice, and finds what is missing.

It is one module of over 300 lines: both ends, and what a batch is between them, are read together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import Any

from esault.errors import PayloadError
from esault.flow.channel.frame import DATA, Root, encode_plain
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.refused_key import refused_key, refused_keys
from esault.flow.channel.wire import Link
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.codec import Codec, explain
from esault.payload.column import PLAIN_TYPES
from esault.payload.packed_rows import Rows
from esault.payload.shared_texts import shared_texts
from esault.routing.ring import check_key

__all__ = ["MAX_BATCH_ROWS", "InChannel", "OutChannel"]

#: rows of one batch at most: a bolt may turn one tuple into a million
MAX_BATCH_ROWS = 4096

#: the first byte of half a surrogate pair in a frame, and what the second and third may be; some numbers look so too
_FIRST_BYTE, _SECOND_BYTES, _THIRD_BYTES = b"\xed", range(0xA0, 0xC0), range(0x80, 0xC0)


class _OpenBatch:
    """A batch that can still grow, unless it is `whole`: one of arrays.

    Until it is `joined`, its columns are lists of the columns that were added, which must not change: so none is copied twice.
    """

    __slots__ = ("due", "id", "ids", "input", "keys", "root", "values", "whole")

    def __init__(self, root: Root, id: int, input: int, due: float) -> None:
        self.root = root
        self.id = id
        self.input = input
        self.due = due
        self.keys: Any = []
        self.values: Any = []
        self.ids: Any = None
        self.whole = False

    def join(self) -> None:
        """Make one column of each, once no more are added."""
        if not self.whole:
            self.keys, self.values = _joined(self.keys), _joined(self.values)
            if self.ids is not None:
                self.ids = _joined(self.ids)


def _joined(parts: list[Sequence[Any]]) -> Sequence[Any]:
    return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))


class OutChannel:
    """The sending end. Nothing here blocks: frames that the link refuses wait in `queue`."""

    __slots__ = (
        "_batches",
        "_codec",
        "_epoch",
        "_link",
        "_plain",
        "_random64",
        "_row_limit",
        "_settings",
        "_tracked",
        "_unit",
        "gave",
        "incarnation",
        "number",
        "opened_at",
        "queue",
        "rows",
        "seq",
        "told",
        "unprocessed",
    )

    def __init__(
        self,
        incarnation: int,
        number: int,
        epoch: int,
        link: Link,
        codec: Codec,
        settings: Settings,
        random64: Callable[[], int],
        unit: str,
    ) -> None:
        #: the receiver
        self.incarnation = incarnation
        #: given by the receiver's unit
        self.number = number
        self._epoch = epoch
        self._link = link
        self._codec = codec
        self._settings = settings
        self._tracked = settings.delivery is not Delivery.NONE
        self._random64 = random64
        self._unit = unit
        #: frames that wait for the link
        self.queue: deque[bytes] = deque()
        #: number of the last frame
        self.seq = 0
        #: rows in open batches
        self.rows = 0
        #: rows that were sent and are not processed, where that is counted
        self.unprocessed = 0
        #: the newest change in which the receiver gave keys away
        self.gave = 0
        #: the watermark that was sent last
        self.told: object = None
        #: when the oldest open batch was opened; 0.0 where none is
        self.opened_at = 0.0
        self._batches: list[_OpenBatch] = []
        self._row_limit = settings.frame_rows
        #: frames held nothing but Python's own containers and scalars so far
        self._plain = True

    def add(
        self,
        lineage: Lineage,
        input: int,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        now: float,
    ) -> None:
        """Append rows to the batch of their root, opening it if need be; a full buffer goes at once.

        The columns must not change afterwards.
        """
        if len(keys) > MAX_BATCH_ROWS:
            for start in range(0, len(keys), MAX_BATCH_ROWS):
                stop = start + MAX_BATCH_ROWS
                part = ids[start:stop] if ids is not None else None
                self.add(lineage, input, keys[start:stop], values[start:stop], part, now)
            return
        batches = self._batches
        batch = batches[-1] if batches else None
        if batch is None or batch.root != lineage.root or batch.input != input or batch.whole:
            batch = self._open(lineage, input, now)
        batch.keys.append(keys)
        batch.values.append(values)
        if ids is not None:
            if batch.ids is None:
                batch.ids = []
            batch.ids.append(ids)
        self.rows += len(keys)
        if self.rows >= self._row_limit:
            self.flush(now)

    def add_whole(
        self, lineage: Lineage, input: int, rows: int, keys: Any, values: Any, ids: Sequence[str] | None, now: float
    ) -> None:
        """Append columns, at most MAX_BATCH_ROWS long and as `wired` gives them, as a batch of their own."""
        batch = self._open(lineage, input, now)
        batch.keys, batch.values, batch.ids, batch.whole = keys, values, None if ids is None else list(ids), True
        self.rows += rows
        if self.rows >= self._row_limit:
            self.flush(now)

    def _open(self, lineage: Lineage, input: int, now: float) -> _OpenBatch:
        if not self._batches:
            self.opened_at = now
        # The id is drawn when the batch is opened, so that it is in the ledger's sum before it is sent.
        id = self._random64() if self._tracked else 0
        lineage.p ^= id
        lineage.d ^= id
        batch = _OpenBatch(lineage.root, id, input, lineage.due)
        self._batches.append(batch)
        return batch

    def flush(self, now: float) -> None:
        """Make a frame of what is buffered and offer it to the link. Raises PayloadError."""
        batches = self._batches
        if not batches:
            return
        self.rows = 0
        self._batches = []
        self.opened_at = 0.0
        for batch in batches:
            batch.join()
        try:
            frame = self._data(batches, now)
        except PayloadError:
            raise _culprit(self._unit, batches) from None
        if _may_hold_surrogate(frame):
            for batch in batches:
                keys = batch.keys if not batch.whole else getattr(batch.keys, "rows", ())
                _check_texts(self._unit, keys)
        size = self._offer(frame)
        if size > self._settings.frame_bytes:
            self._row_limit = max(1, self._settings.frame_rows * self._settings.frame_bytes // size)
        elif self._row_limit < self._settings.frame_rows:
            self._row_limit = min(self._settings.frame_rows, self._row_limit * 2)

    def _data(self, batches: Sequence[_OpenBatch], now: float) -> bytes:
        """A DATA frame: all batches in one piece where they are plain, else column by column."""
        if self._plain:
            packed = None
            if not any(b.whole for b in batches):
                packed = encode_plain(
                    self._codec,
                    self._epoch,
                    self.number,
                    self.seq + 1,
                    now,
                    [
                        (b.root, b.id, b.input, tuple(b.keys), tuple(b.values), b.due, b.ids and tuple(b.ids))
                        for b in batches
                    ],
                    shared_texts([(b.keys, b.values) for b in batches]),
                )
            if packed is not None:
                return packed
            self._plain = False  # what comes later is most likely of the same kind
        body = [
            now,
            *(
                (b.root, b.id, b.input, b.keys, b.values, b.due, b.ids)
                if b.whole
                else (b.root, b.id, b.input, Rows(b.keys), Rows(b.values), b.due, b.ids)
                for b in batches
            ),
        ]
        return self._frame(DATA, body)

    def put(self, kind: int, body: Any) -> int:
        """Send a frame behind all that was sent or flushed before it; its size in bytes."""
        return self._offer(self._frame(kind, body))

    def _frame(self, kind: int, body: Any) -> bytes:
        return self._codec.pack((kind, self._epoch, self.number, self.seq + 1, body))

    def _offer(self, frame: bytes) -> int:
        self.seq += 1
        if self.queue or not self._link.send(frame):
            self.queue.append(frame)
        return len(frame)

    def retry(self) -> bool:
        """Offer waiting frames again; True when none is left."""
        queue = self.queue
        while queue:
            if not self._link.send(queue[0]):
                return False
            queue.popleft()
        return True

    def close(self) -> None:
        """The receiver has read END, or is gone: what it has not read is lost."""
        self._link.close()
        self.queue.clear()
        self._batches.clear()
        self.rows = 0


def _may_hold_surrogate(frame: bytes) -> bool:
    """Return whether half of a surrogate pair may stand in a frame: to look at each key takes as long as to pack it."""
    at = frame.find(_FIRST_BYTE)
    while 0 <= at < len(frame) - 2:
        if frame[at + 1] in _SECOND_BYTES and frame[at + 2] in _THIRD_BYTES:
            return True
        at = frame.find(_FIRST_BYTE, at + 1)
    return False


def _check_texts(unit: str, keys: Sequence[Any]) -> None:
    """Check that all texts among keys are text: a value may hold half of a surrogate pair, and a key has no place on the ring then."""
    for key in keys:
        try:
            check_key(key)
        except PayloadError as error:
            if "surrogate" in str(error):
                raise refused_keys(unit, (key,)) from None


def _culprit(unit: str, batches: Sequence[_OpenBatch]) -> PayloadError:
    """Return an error that names the row which cannot travel."""
    for batch in batches:
        rows = [column if type(column) in PLAIN_TYPES else () for column in (batch.keys, batch.values)]
        for key, value in zip_longest(*rows):
            for what, thing in (("key", key), ("value", value)):
                reason = explain(thing)
                if reason is not None:
                    refused = refused_key(unit, key) if what == "key" else None
                    return refused or PayloadError(
                        f"unit {unit!r} emitted a tuple with key {key!r} whose {what} is refused: {reason}"
                    )
    return PayloadError(
        f"unit {unit!r} emitted rows that are too large to travel in one frame, or nested too deeply; "
        "emit smaller values"
    )


class InChannel:
    """The receiving end: numbers of frames grow by one."""

    __slots__ = ("broken", "ended", "number", "parted", "passed", "seen", "sender")

    def __init__(self, sender: int, number: int) -> None:
        self.sender = sender
        self.number = number
        #: number of the last frame read
        self.seen = 0
        #: END was read
        self.ended = False
        #: the newest portion of state whose fence was read: version of the change, number
        self.passed = (0, 0)
        #: fences behind which a bolt that was chained to the sender has processes of its own
        self.parted: set[tuple[int, int]] = set()
        #: a frame is missing: what follows is dropped
        self.broken = False

    def accepts(self, seq: int) -> bool:
        """Return whether the frame with this number is the next one; marks the channel broken at a gap."""
        if self.broken or seq <= self.seen:
            return False
        if seq != self.seen + 1:
            self.broken = True
            return False
        self.seen = seq
        return True
