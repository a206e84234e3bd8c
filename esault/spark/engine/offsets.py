"""Offsets: how far each part of each spout has been read, as Spark keeps them in its log.

```
{"parts": {"lines": [[rows, position, ended, [[row, due, position], ...]], ...]}, "pulses": {"count": [number, now]}, "end": false,
 "now": 0.0, "generation": 0}
```

A position is the spout's own, packed, in base 64; null before the first row. The list behind it are marks: from `row` on tuples were due at
`due`; where a mark has a position, another worker can begin to read there. `end` says that all has been read, or that the run is
being drained: units finish behind it. `now` is when it was published: the time of the batch that ends here, in whichever worker and
however often it is computed. The first batch of a later `generation` wakes all tasks, which take over what others had.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esault.spark.spark_path import SparkPlace

__all__ = ["Offset", "latest", "pack_position", "publish", "resumed", "start", "unpack_position"]

Offset = dict[str, Any]

_LATEST, _FIRST = "latest.json", "first.json"


def start(parts: dict[str, int]) -> Offset:
    """Before the first tuple."""
    return {
        "parts": {name: [[0, None, False, []] for _ in range(n)] for name, n in parts.items()},
        "pulses": {},
        "end": False,
        "now": 0.0,
        "generation": 0,
    }


def pack_position(position: bytes | None) -> str | None:
    """As JSON has it."""
    return None if position is None else b64encode(position).decode()


def unpack_position(text: str | None) -> bytes | None:
    """The reverse."""
    return None if text is None else b64decode(text)


def publish(folder: Path, offset: Offset, first: bool = False) -> None:
    """Have the source find this offset as the newest; with `first` also as the one that a new query begins from."""
    text = json.dumps(offset)
    for name in (_FIRST, _LATEST) if first else (_LATEST,):
        part = folder / f".{name}.part"
        part.write_text(text)
        os.replace(part, folder / name)


def latest(folder: Path, first: bool = False) -> Offset:
    """Return the offset that was published last."""
    found: Offset = json.loads((folder / (_FIRST if first else _LATEST)).read_text())
    return found


def resumed(checkpoint: SparkPlace, until: int | None = None) -> Offset | None:
    """The newest offset in the log of a query: what it has processed, or begun to process. None: it has not begun.

    `until`: no batch behind this one. A file of that log is named by its batch, and has a version, a line of Spark's own, and a line for
    each source.
    """
    batches = sorted((int(p.name) for p in (checkpoint / "offsets").glob("*") if p.name.isdigit()), reverse=True)
    for batch in batches:
        if until is not None and batch > until:
            continue
        lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
        if len(lines) >= 3 and lines[2] != "-":
            found: Offset = json.loads(lines[2])
            return found
    return None
