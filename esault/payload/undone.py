"""The records of a run that were undone, since all went back to a checkpoint before them: their tuples come again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf
from typing import Any

__all__ = ["Undone", "restore_note"]


def restore_note(
    run: str, lineage: str, epoch: int, number: int, time: float, continues: tuple[str, int] | None = None
) -> dict[str, Any]:
    """Return the note that all of a run went back to this checkpoint, and began this epoch; `time`: seconds since the epoch of clocks.

    `continues`: the run that this one goes on with, and from which of its checkpoints (0: from its beginning); None: it began anew.
    """
    return {
        "restored": number,
        "run": run,
        "lineage": lineage,
        "epoch": epoch,
        "time": time,
        "continues": None if continues is None else list(continues),
    }


class Undone:
    """Knows the notes of restores. A record says behind which checkpoint it was written, and when: `lineage`, `run`, `epoch`, `time`.

    A run that began anew undoes nothing of the runs before it. One that goes on with another undoes what that one wrote behind
    the checkpoint, and what runs wrote that went on from there. Notes of an older version do not say how their run began: they
    undo what any run of the lineage wrote behind the checkpoint.
    """

    def __init__(self) -> None:
        self._notes: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        #: run -> the run that it goes on with, and from which checkpoint
        self._continues: dict[str, tuple[str, int]] = {}
        self._ways: dict[str, dict[str, float]] = {}

    def note(self, record: Mapping[str, Any]) -> bool:
        """Take a note; False where the record is none."""
        if "restored" not in record:
            return False
        self._notes[str(record.get("lineage"))].append(record)
        if record.get("continues"):
            run, number = record["continues"]
            self._continues[str(record["run"])] = run, number
            self._ways.clear()
        return True

    def __contains__(self, record: object) -> bool:
        """Return whether all went back behind a record after it was written."""
        if not isinstance(record, Mapping) or not isinstance(record.get("checkpoint"), int):
            return False
        notes = self._notes.get(str(record.get("lineage")), ())
        return any(_later(note, record) and self._behind(note, record) for note in notes)

    def _behind(self, note: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
        """Return whether a record was written behind the checkpoint of a note, by its run or one whose work it goes on with."""
        run, number = str(record.get("run")), record["checkpoint"]
        if "continues" not in note:
            return bool(note["restored"] <= number)
        way, passed = self._way(str(note["run"])), set()
        while run not in way:
            if run in passed or run not in self._continues:
                return False
            passed.add(run)
            run, number = self._continues[run]
        return bool(min(note["restored"], way[run]) <= number)

    def _way(self, run: str) -> dict[str, float]:
        """Return the runs whose work this one goes on with, itself among them, and behind which checkpoint of each it does not."""
        if run not in self._ways:
            way: dict[str, float] = {run: inf}
            before, number = self._continues.get(run), inf
            while before is not None and before[0] not in way:
                number = min(number, before[1])
                way[before[0]] = number
                before = self._continues.get(before[0])
            self._ways[run] = way
        return self._ways[run]


def _later(note: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    if note["run"] == record.get("run"):
        return bool(note["epoch"] > record["epoch"])
    return bool(note["time"] >= record["time"])
