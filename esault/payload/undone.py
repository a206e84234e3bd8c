"""The records of a run that were undone, since all went back to a checkpoint before them: their tuples come again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

__all__ = ["Undone", "restore_note"]


def restore_note(run: str, lineage: str, epoch: int, number: int, time: float) -> dict[str, Any]:
    """Return the note that all of a run went back to this checkpoint, and began this epoch; `time`: seconds since the epoch of clocks."""
    return {"restored": number, "run": run, "lineage": lineage, "epoch": epoch, "time": time}


class Undone:
    """Knows the notes of restores. A record says behind which checkpoint it was written, and when: `lineage`, `run`, `epoch`, `time`."""

    def __init__(self) -> None:
        self._notes: dict[str, list[Mapping[str, Any]]] = defaultdict(list)

    def note(self, record: Mapping[str, Any]) -> bool:
        """Take a note; False where the record is none."""
        if "restored" not in record:
            return False
        self._notes[str(record.get("lineage"))].append(record)
        return True

    def __contains__(self, record: object) -> bool:
        """Return whether all went back behind a record after it was written."""
        if not isinstance(record, Mapping) or not isinstance(record.get("checkpoint"), int):
            return False
        behind, notes = record["checkpoint"], self._notes.get(str(record.get("lineage")), ())
        return any(note["restored"] <= behind and _later(note, record) for note in notes)


def _later(note: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    if note["run"] == record.get("run"):
        return bool(note["epoch"] > record["epoch"])
    return bool(note["time"] >= record["time"])
