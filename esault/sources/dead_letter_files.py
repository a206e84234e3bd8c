"""Files of dead letters: JSON lines, one file for each sub-unit, and beside each the ids of the dead letters that went again."""

from __future__ import annotations

import base64
import binascii
import contextlib
import glob
import json
import os
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esault.errors import FrameError, SourceError
from esault.payload.codec import Codec
from esault.payload.undone import Undone

__all__ = ["SENT", "DeadLetter", "DeadLetterFiles", "parse_line", "sent_ids"]

#: behind the name of a file of dead letters: the ids of those that were sent again, one a line
SENT = ".sent"


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter as it stands in a file."""

    file: str
    record: dict[str, Any]
    #: it was sent again, and what came of it is durable
    sent: bool = False

    @property
    def id(self) -> str:
        """Its name, unique over all runs."""
        return str(self.record["id"])

    @property
    def can_be_sent(self) -> bool:
        """Return whether it has a tuple, and a place where that goes."""
        return bool(self.record.get("at")) and bool(self.record.get("packed"))

    def rows(self) -> list[tuple[Any, Any]]:
        """Return its tuples, exactly as they failed; none where what failed had no tuple. Raises SourceError."""
        packed = self.record.get("packed")
        if not packed:
            return []
        try:
            rows = Codec().unpack(base64.b64decode(packed))
            # What goes to a unit of aggregates in its own run holds the tuple's value.
            combined = bool(self.record.get("combined"))
            return [(key, value[2] if combined else value) for key, value in rows]
        except (FrameError, binascii.Error, TypeError, ValueError) as error:
            raise SourceError(
                f"{self.file}: the tuple of dead letter {self.id} cannot be read here ({error}); the classes of its values must be importable"
            ) from None


class DeadLetterFiles:
    """The files of dead letters that a path stands for.

    A path is what `dead_letter(path)` was given (its sub-units wrote `dead.7.jsonl` for `dead.jsonl`), one of these files, a folder,
    or a glob.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.expanduser(os.fspath(path))

    def find(self) -> list[str]:
        """Return the names of all files there now, sorted."""
        path = Path(self.path)
        if path.is_dir():
            names = glob.glob(os.path.join(glob.escape(self.path), "*.jsonl"))
        else:
            beside = path.with_name(f"{glob.escape(path.stem)}.*{path.suffix}")
            of_sub_units = glob.glob(os.path.join(glob.escape(str(path.parent)), beside.name))
            number = slice(len(path.stem) + 1, -len(path.suffix) or None)
            names = [name for name in of_sub_units if os.path.basename(name)[number].isdecimal()] + glob.glob(self.path)
            names += [self.path] if path.exists() else []
        return sorted({name for name in names if not name.endswith(SENT)})

    def read(self) -> Iterator[DeadLetter]:
        """Yield all dead letters, by file and in the order in which they were written, but those that were undone. Raises SourceError."""
        undone = self.undone()
        for name in self.find():
            sent = sent_ids(name)
            for line in _lines(name):
                dead = parse_line(name, line, sent, undone)
                if dead is not None:
                    yield dead

    def undone(self) -> Undone:
        """Return what tells which dead letters were undone, by the notes in all files. Raises SourceError."""
        undone = Undone()
        for name in self.find():
            for line in _lines(name):
                if line.startswith(b'{"restored"') and (note := _record(line)) is not None:
                    undone.note(note)
        return undone

    @staticmethod
    def mark(dead_ones: Iterable[DeadLetter]) -> None:
        """Note durably that these were sent again. Raises SourceError."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for dead in dead_ones:
            by_file[dead.file].append(dead.id)
        for name, ids in by_file.items():
            mark_sent(name, ids)


def parse_line(
    name: str, line: bytes, sent: Iterable[str] = (), undone: Container[Mapping[str, Any]] = ()
) -> DeadLetter | None:
    """Return the dead letter of a line; None for what is none, such as a line that a crash cut off, and for one that was undone."""
    record = _record(line)
    if record is None or "id" not in record or "unit" not in record or record in undone:
        return None
    return DeadLetter(name, record, record["id"] in sent)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _lines(name: str) -> Iterator[bytes]:
    try:
        with open(name, "rb") as file:
            yield from file
    except OSError as error:
        raise SourceError(f"{name}: dead letters cannot be read: {error.strerror or error}") from error


def sent_ids(name: str, but: str = "") -> set[str]:
    """Return the ids of the dead letters of a file that were sent again; not those that runs of the lineage `but` marked."""
    with contextlib.suppress(FileNotFoundError), open(name + SENT, encoding="utf-8") as file:
        marks = [line.split() for line in file]
        return {mark[0] for mark in marks if mark and not (but and mark[1:] == [but])}
    return set()


def mark_sent(name: str, ids: Iterable[str], lineage: str = "") -> None:
    """Add ids to those of a file that were sent again, with the lineage of the runs that did; durable. Raises SourceError."""
    try:
        with open(name + SENT, "a", encoding="utf-8") as file:
            file.write("".join(f"{id} {lineage}\n" for id in ids))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SourceError(f"{name}{SENT}: it cannot be noted what was sent again: {error.strerror or error}") from error
