"""Dead letters of earlier runs as a source: each file is a split."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SourceError
from esault.payload.undone import Undone
from esault.sources.dead_letter_files import DeadLetterFiles, mark_sent, parse_line, sent_ids
from esault.sources.file_list import FILES_AT_ONCE, unreadable
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream

__all__ = ["DeadLetters"]


class DeadLetters(SplitSource[Any, Any]):
    """The tuples of dead letters, exactly as they failed. Key and value: those of the tuple.

    `path` is what `dead_letter(path)` was given, one of the files that its sub-units wrote, a folder, or a glob. `unit` takes those of
    this unit alone; `error` those whose error begins so, such as "ValueError". One of a batch gives all tuples of the batch.

    What was sent again is left out. When what came of a dead letter is durable (in a complete checkpoint, or without checkpoints
    processed and committed), it is marked as sent, so that no later run takes it: after a crash between the two it comes once more. One
    without a tuple, such as that of `finish` or `on_timer`, is left out and counted. What is added to a file while it is read is read by
    the next run.
    """

    delivery_guarantee: ClassVar[str] = (
        "each dead letter counts once with checkpoints; a crash before it is marked as sent gives it to a later run once more"
    )

    def __init__(self, path: str | os.PathLike[str], *, unit: str | None = None, error: str = "") -> None:
        self._files = DeadLetterFiles(path)
        self._unit, self._error = unit, error
        self._lineage = ""
        self.splits_at_once = FILES_AT_ONCE

    def check(self) -> None:
        """Raises SourceError where there is no file of dead letters."""
        if not self._files.find():
            raise SourceError(
                f"{self._files.path}: there are no dead letters; check the spelling, or the folder you started from"
            )

    def open(self, context: Context) -> None:
        """Open nothing: files are opened one by one."""
        self._lineage = context.lineage

    def splits(self) -> Sequence[str]:
        """Return the names of all files, sorted."""
        return self._files.find()

    def open_split(self, id: str, position: tuple[int, int] | None) -> SplitReader[Any, Any]:
        """Return a reader of this file from a dead letter's byte, and one of its tuples, on. Raises SourceError."""
        return _FileReader(id, position, self._lineage, self._unit, self._error, self._files.undone())


class _FileReader(SplitReader[Any, Any]):
    def __init__(
        self, name: str, position: tuple[int, int] | None, lineage: str, unit: str | None, error: str, undone: Undone
    ) -> None:
        self._name, self._lineage, self._unit, self._error, self._undone = name, lineage, unit, error, undone
        # Where the run goes back behind its own marks, what came of these dead letters is gone: its position tells, and not they.
        self._sent = sent = sent_ids(name, "" if position is None else lineage)
        #: dead letters that were left out, since they have no tuple
        self._without = 0
        #: the dead letter that is read: its first byte and the one behind it, its tuples and how many of them were given
        self._id, self._start, self._end = "", 0, 0
        self._rows: list[tuple[Any, Any]] = []
        self._taken = 0
        self._ids: list[str] = []
        #: (byte behind it, id) of dead letters that were read and are not marked
        self._unmarked: list[tuple[int, str]] = []
        try:
            self._file = open(name, "rb")  # noqa: SIM115
        except OSError as error_:
            raise unreadable(name, error_) from error_
        start, taken = position or (0, 0)
        while self._end < start and self._pass():
            pass  # a run that died may have left some of these unmarked: the next commit marks them
        self._rows = []
        if taken:
            self._sent = set()  # a part of this one has been read: the rest follows, also where it was sent meanwhile
            self._next()
            self._taken, self._sent = taken, sent

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        rows: list[tuple[Any, Any]] = []
        self._ids = []
        while len(rows) < limit and (self._taken < len(self._rows) or self._next()):
            some = self._rows[self._taken : self._taken + limit - len(rows)]
            self._ids += [f"{self._id}.{i}" for i in range(self._taken, self._taken + len(some))]
            self._taken += len(some)
            rows += some
        if not rows and limit > 0:
            raise EndOfStream
        return rows

    def _next(self) -> bool:
        """Go on to the next dead letter that has tuples; False at the end."""
        while self._pass():
            if self._taken < len(self._rows):
                return True
        return False

    def _pass(self) -> bool:
        """Read a line; False at the end, or where what follows is being written."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            self._file.seek(self._end)
            return False
        self._start, self._end = self._end, self._end + len(line)
        self._rows, self._taken = [], 0
        dead = parse_line(self._name, line, self._sent, self._undone)
        if dead is not None and not dead.sent and self._wanted(dead.record):
            self._id, self._rows = dead.id, dead.rows()
            if self._rows:
                self._unmarked.append((self._end, dead.id))
            else:
                self._without += 1
        return True

    def _wanted(self, record: Mapping[str, Any]) -> bool:
        return (self._unit is None or record["unit"] == self._unit) and str(record.get("error")).startswith(self._error)

    def row_ids(self) -> list[str]:
        return self._ids

    def position(self) -> tuple[int, int]:
        return (self._start, self._taken) if self._taken < len(self._rows) else (self._end, 0)

    def commit(self, position: tuple[int, int]) -> None:
        durable = [id for end, id in self._unmarked if end <= position[0]]
        if durable:
            mark_sent(self._name, durable, self._lineage)
            self._unmarked = self._unmarked[len(durable) :]

    def counters(self) -> dict[str, int]:
        return {"dead_letters_without_tuple": self._without} if self._without else {}

    def close(self) -> None:
        self._file.close()
