"""Frames: what travels on the channels between sub-units. `[kind, epoch, channel, seq, body]` in MessagePack.

DATA carries batches, several to a frame, after the time the frame was packed: `[packed at, batch, ...]`. A batch
descends from one root and is columnar: its rows are a sequence of keys and one of values, or arrays. What comes in is
checked for shape before it is relied on; what cannot be read is a FrameError and never an action.

DATA of nothing but Python's own containers and scalars has a form that is quicker: a head of fixed length, which begins as no
MessagePack does, and all batches as one pickle behind it. Texts that stand in many rows are a pickle before that one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from esault.errors import FrameError, PayloadError
from esault.payload.codec import Codec
from esault.payload.column import is_column

__all__ = [
    "ACK",
    "BARRIER",
    "CHANGE_KINDS",
    "CHECKPOINT",
    "DATA",
    "END",
    "FENCE",
    "FETCH",
    "GOT",
    "KINDS",
    "MARK",
    "PROBE",
    "REGISTER",
    "ROWS",
    "STATE",
    "STATE_END",
    "WATERMARK",
    "Batch",
    "Frame",
    "Root",
    "batch_of",
    "decode",
    "encode_plain",
]

DATA, BARRIER, CHECKPOINT, WATERMARK, END, PROBE = 1, 2, 3, 4, 5, 6
ROWS, STATE, STATE_END, FETCH, GOT = 7, 8, 9, 10, 11
ACK, REGISTER, MARK = 12, 13, 14
FENCE = 15

#: those of a change, which go from owner to owner
CHANGE_KINDS = (ROWS, STATE, STATE_END, FETCH, GOT)

#: names of the kinds, for logs
KINDS = {
    DATA: "DATA",
    BARRIER: "BARRIER",
    CHECKPOINT: "CHECKPOINT",
    WATERMARK: "WATERMARK",
    END: "END",
    PROBE: "PROBE",
    ROWS: "ROWS",
    STATE: "STATE",
    STATE_END: "STATE_END",
    FETCH: "FETCH",
    GOT: "GOT",
    ACK: "ACK",
    REGISTER: "REGISTER",
    MARK: "MARK",
    FENCE: "FENCE",
}

#: first of a frame whose batches are plain
_PLAIN: Final = b"\xc1B"
#: ... before which stand texts that they share
_SHARED: Final = b"\xc1C"
#: that, epoch, channel, seq, packed at
_HEAD: Final = struct.Struct(">2sQQQd")

#: (incarnation of the owner, number, attempt)
Root = tuple[int, int, int]


class Batch(NamedTuple):
    """The tuples that travel together: one root, one input of the receiver, columns of equal length."""

    root: Root
    #: random 64-bit name in the ledger; 0 where nothing is acked
    id: int
    #: which of the receiving unit's inputs
    input: int
    keys: Any
    values: Any
    #: when the first of them was due at its spout, seconds since the epoch
    due: float
    #: row ids, or None where no sink wants them
    ids: Any


class Frame(NamedTuple):
    """A frame as it was read."""

    kind: int
    epoch: int
    channel: int
    seq: int
    body: Any


def batch_of(raw: Any) -> Batch:
    """Check one batch as it stands in a frame. Raises FrameError."""
    if type(raw) is not tuple or len(raw) != 7:
        raise FrameError("a batch has seven fields")
    batch = Batch._make(raw)
    root, keys, values = batch.root, batch.keys, batch.values
    if type(root) is not tuple or len(root) != 3 or not (type(root[0]) is type(root[1]) is type(root[2]) is int):
        raise FrameError("a root is three integers")
    if (type(keys) is not tuple or type(values) is not tuple) and not (is_column(keys) and is_column(values)):
        raise FrameError("the columns of a batch are sequences or arrays")
    if len(keys) != len(values):
        raise FrameError("the columns of a batch have one length")
    if type(batch.id) is not int or type(batch.input) is not int or type(batch.due) is not float:
        raise FrameError("a batch's id and input are integers, its due time is a float")
    if batch.ids is not None and (type(batch.ids) is not tuple or len(batch.ids) != len(keys)):
        raise FrameError("row ids are one for each row")
    return batch


def encode_plain(
    codec: Codec,
    epoch: int,
    channel: int,
    seq: int,
    at: float,
    batches: Sequence[tuple[Any, ...]],
    shared: Sequence[str] = (),
) -> bytes | None:
    """A frame of DATA whose batches have tuples for columns; None where a row is more than plain. Raises PayloadError.

    `shared` are texts that stand in many rows as one object.
    """
    form = _SHARED if shared else _PLAIN
    return codec.pack_plain(batches, _HEAD.pack(form, epoch, channel, seq, at), shared)


def _decode_plain(data: bytes | memoryview, codec: Codec) -> Frame:
    if len(data) < _HEAD.size:
        raise FrameError("a frame of plain batches has a head")
    form, epoch, channel, seq, at = _HEAD.unpack_from(data)
    batches = codec.unpack_plain(data, _HEAD.size, form == _SHARED) if form in (_PLAIN, _SHARED) else None
    if type(batches) is not list or not batches:
        raise FrameError("DATA is at least one batch")
    return Frame(DATA, epoch, channel, seq, (at, [batch_of(b) for b in batches]))


def decode(data: bytes | memoryview, codec: Codec) -> Frame:
    """Read a frame; the body of DATA becomes `(packed at, [Batch, ...])`. Raises FrameError."""
    if data and data[0] == _PLAIN[0]:
        return _decode_plain(data, codec)
    try:
        raw = codec.unpack(data)
    except PayloadError as error:
        raise FrameError(str(error)) from error
    if type(raw) is not tuple or len(raw) != 5:
        raise FrameError("a frame has five fields")
    kind, epoch, channel, seq, body = raw
    if not (type(kind) is type(epoch) is type(channel) is type(seq) is int) or kind not in KINDS:
        raise FrameError("a frame starts with four integers, the first of them a known kind")
    if kind == DATA:
        if type(body) is not tuple or len(body) < 2 or type(body[0]) is not float:
            raise FrameError("DATA is a time and at least one batch")
        body = (body[0], [batch_of(b) for b in body[1:]])
    elif kind in (ACK, REGISTER, MARK):
        if type(body) is not tuple:
            raise FrameError(f"{KINDS[kind]} is a sequence")
        for item in body:
            if type(item) is not tuple or len(item) != (2 if kind == MARK else 3) or not _is_root(item[0]):
                raise FrameError(f"{KINDS[kind]} is a sequence of roots with numbers")
            if any(type(x) is not int for x in item[1:]):
                raise FrameError(f"{KINDS[kind]} is a sequence of roots with numbers")
    return Frame(kind, epoch, channel, seq, body)


def _is_root(raw: Any) -> bool:
    return type(raw) is tuple and len(raw) == 3 and type(raw[0]) is type(raw[1]) is type(raw[2]) is int
