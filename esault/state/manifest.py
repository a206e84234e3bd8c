"""The manifest of one checkpoint, as a file: when it has its name, the checkpoint is complete.

One line of JSON, and one with its CRC-32. Values that JSON has no word for (positions, what sinks prepared) are packed by the
codec of the data path and written in base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict
from typing import Any
from zlib import crc32

from esault.errors import CheckpointError, FrameError, PayloadError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle, Piece
from esault.messages.splits import SplitPlace
from esault.payload.codec import of_thread
from esault.state.place import Place

__all__ = ["FORMAT", "decode", "encode", "read"]

#: since 2 rows in flight, since 3 positions of splits; a checkpoint without them is written as an earlier one
FORMAT = 3


def encode(kept: CompletedCheckpoint) -> bytes:
    """The content of the file. Raises CheckpointError for a handle that cannot be written."""
    codec = of_thread()
    try:
        handles = [[h.unit, h.sink, h.number, _text(codec.pack_value(h.handle))] for h in kept.handles]
    except PayloadError as error:
        raise CheckpointError(
            f"what a sink said in prepare() cannot be kept: {error}; return a value that can travel"
        ) from error
    content = {
        "format": max((3 if unit.splits else 2 if unit.in_flight else 1 for unit in kept.units.values()), default=1),
        "number": kept.number,
        "topology": kept.topology,
        "run": kept.run,
        "next_incarnation": kept.next_incarnation,
        "begun_at": kept.begun_at,
        "completed_at": kept.completed_at,
        "units": {name: _unit(unit) for name, unit in kept.units.items()},
        "handles": handles,
        **({"repeats": True} if kept.repeats else {}),
    }
    text = json.dumps(content)
    return f"{text}\n{crc32(text.encode()):08x}\n".encode()


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _unit(unit: CompletedUnit) -> dict[str, Any]:
    return {
        "kind": unit.kind,
        "objects": unit.objects,
        "parallelism": unit.parallelism,
        "chains": [[asdict(piece) for piece in chain] for chain in unit.chains],
        "table": unit.table,
        "positions": [[part, _text(position)] for part, position in unit.positions.items()],
        "sources": list(unit.sources.items()),
        "finished": unit.finished,
        **({"in_flight": [asdict(piece) for piece in unit.in_flight]} if unit.in_flight else {}),
        **({"ranges": unit.ranges} if unit.ranges else {}),
        **({"windows": unit.windows} if unit.windows else {}),
        **(
            {"splits": [[id, _text(at.position), at.ended, *at.times] for id, at in unit.splits.items()]}
            if unit.splits
            else {}
        ),
    }


def decode(data: bytes, path: Place) -> CompletedCheckpoint:
    """The checkpoint. Raises CheckpointError, which names `path`."""
    codec = of_thread()
    try:
        text, checksum, *_ = data.decode().split("\n")
        if f"{crc32(text.encode()):08x}" != checksum:
            raise ValueError("its checksum is another one")
        content = json.loads(text)
        if content["format"] > FORMAT:
            raise CheckpointError(
                f"{path} is in format {content['format']}, written by a newer eSault; this one reads up to {FORMAT}: "
                "install the newer one"
            )
        units = {name: _made(unit) for name, unit in content["units"].items()}
        handles = tuple(
            Handle(unit, sink, number, codec.unpack(b64decode(handle)))
            for unit, sink, number, handle in content["handles"]
        )
        return CompletedCheckpoint(
            content["number"],
            content["run"],
            units,
            handles,
            content["next_incarnation"],
            content["begun_at"],
            content["completed_at"],
            content["topology"],
            content.get("repeats", False),
        )
    except (ValueError, KeyError, TypeError, FrameError) as error:
        raise CheckpointError(f"{path} is damaged, or no manifest of eSault: {error}") from error


def _made(unit: dict[str, Any]) -> CompletedUnit:
    return CompletedUnit(
        kind=unit["kind"],
        objects=unit["objects"],
        parallelism=unit["parallelism"],
        chains=tuple(tuple(Piece(**piece) for piece in chain) for chain in unit["chains"]),
        table=tuple((start, number) for start, number in unit["table"]),
        positions={part: b64decode(position) for part, position in unit["positions"]},
        sources=dict(unit["sources"]),
        finished=unit["finished"],
        in_flight=tuple(Piece(**piece) for piece in unit.get("in_flight", ())),
        ranges=tuple(tuple((low, high) for low, high in ranges) for ranges in unit.get("ranges", ())),
        splits={id: SplitPlace(b64decode(at), ended, tuple(times)) for id, at, ended, *times in unit.get("splits", ())},
        windows=tuple(unit.get("windows", ())),
    )


def read(path: Place) -> CompletedCheckpoint:
    """The checkpoint in this file. Raises CheckpointError."""
    try:
        return decode(path.read_bytes(), path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
