"""Dead letters on Spark: rows to the driver, which writes them into one file of its own when their epoch is committed.

A worker's disk is not the driver's. And what a worker wrote at once would be there again for each time that a batch is computed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from esault.payload.json_text import strict_json
from esault.spark.engine.frames import DEAD
from esault.state.dead_letter_file import DeadLetterFile

__all__ = ["DeadLetterBox", "write_dead_letters"]


class DeadLetterBox:
    """The dead letters of one path in one process; what an operator and function steps put them into."""

    def __init__(self, path: str, send: Callable[[Any], None], place: Callable[[], str]) -> None:
        """`send` takes a frame; `place` gives a name that follows from the batch alone: who sends, and how many dead letters there were."""
        self._path, self._send, self._place = path, send, place

    def __str__(self) -> str:
        return self._path

    def put(self, record: dict[str, Any]) -> None:
        """Send one record. Its id and the number of its sub-unit are made to follow from the batch, in whichever worker it is computed."""
        place = self._place()
        named = f"{record['run']}/{record['unit']}/{record['hook']}/{place}/{record['time']!r}/{record['packed']}"
        record["id"] = blake2b(named.encode(errors="replace"), digest_size=6).hexdigest()
        record["sub_unit"] = int(place.split()[0].rpartition("/")[2])
        self._send((DEAD, self._path, strict_json(record, default=repr)))

    def sync(self) -> None:
        """They are durable with the epoch."""

    def close(self) -> None:
        """Nothing is open."""


def write_dead_letters(dead_letters: Iterable[tuple[str, str]], again: bool = False) -> None:
    """Write (path, record) pairs of an epoch, durable; `again`: some of them may be there. Raises SinkError."""
    files: dict[str, DeadLetterFile] = {}
    there: dict[str, set[str]] = {}
    try:
        for path, text in dead_letters:
            if path not in files:
                files[path] = DeadLetterFile(path, 0)
                there[path] = files[path].ids() if again else set()
            record = json.loads(text)
            if record["id"] not in there[path]:
                files[path].put(record)
        for file in files.values():
            file.sync()
    finally:
        for file in files.values():
            file.close()
