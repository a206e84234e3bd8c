"""A table at one version: the sum of its log's entries, and the snapshot that spares reading them all.

A snapshot costs as much as the table has parts, so one is due when the entries since the last one are at least
`SNAPSHOT_EVERY`, and at least a sixteenth of the visible parts: all snapshots together then cost at most 16 times
the last one, and a reader of the table reads at most that sixteenth as single entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from esault.errors import SinkError
from esault.sinks.landing.entry import (
    Entry,
    Input,
    Part,
    Txn,
    format_of,
    inputs_from_json,
    inputs_to_json,
    plain_name,
    seal,
    unseal,
)
from esault.sinks.landing.schema import Schema, schema_from_json, schema_to_json

__all__ = ["SNAPSHOT_EVERY", "Epochs", "TableState", "decode_snapshot", "encode_snapshot"]

#: entries between two snapshots of a small table
SNAPSHOT_EVERY = 256


class Epochs:
    """A set of integers that is nearly a range: the epochs of one writer that are in the log."""

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self._starts.append(start)
            self._ends.append(end)

    def __contains__(self, epoch: int) -> bool:
        i = bisect_right(self._starts, epoch) - 1
        return i >= 0 and epoch <= self._ends[i]

    def add(self, epoch: int) -> None:
        """Put one in; ranges that touch become one."""
        i = bisect_right(self._starts, epoch) - 1
        if i >= 0 and epoch <= self._ends[i]:
            return
        after = i + 1 < len(self._starts) and self._starts[i + 1] == epoch + 1
        if i >= 0 and self._ends[i] == epoch - 1:
            self._ends[i] = self._ends.pop(i + 1) if after else epoch
            if after:
                self._starts.pop(i + 1)
        elif after:
            self._starts[i + 1] = epoch
        else:
            self._starts.insert(i + 1, epoch)
            self._ends.insert(i + 1, epoch)

    def ranges(self) -> list[list[int]]:
        """`[[first, last], ...]`, in order."""
        return [[start, end] for start, end in zip(self._starts, self._ends)]


class TableState:
    """A table at `version`; -1 is before its first entry. Writers pass `keep_files=False` and need little memory."""

    def __init__(self, keep_files: bool = True) -> None:
        self.version = -1
        self.schema: Schema = ()
        #: the columns of whose values there is one row, the newest; empty: all rows are there
        self.primary_key: tuple[str, ...] = ()
        #: of a table with a primary key: the greatest `_updated`, microseconds since the epoch
        self.newest = 0
        #: the run that writes, or wrote last
        self.run: str | None = None
        #: what that run said at its end; None when it has not
        self.ended: bool | None = None
        #: whether no run that is over has left rows twice, as far as is known
        self.clean = True
        #: whether there are rows of a run that has not said how it was
        self.unsaid = False
        #: whether visible parts may have other columns than `schema`
        self.evolved = False
        #: of what a job made it
        self.inputs: tuple[Input, ...] = ()
        self.txns: dict[str, Epochs] = {}
        #: visible parts by name, in the order in which they came; None when not kept
        self.files: dict[str, Part] | None = {} if keep_files else None
        #: how many parts are visible
        self.parts = 0
        #: the newest version at which a snapshot was due
        self.snapshot_at = -1

    def has(self, txn: Txn) -> bool:
        """Return whether this epoch is in the log."""
        epochs = self.txns.get(txn.app)
        return epochs is not None and txn.epoch in epochs

    @property
    def written(self) -> bool:
        """Return whether any row is visible; a table without one may be begun anew in any mode, with any columns."""
        return self.parts > 0

    @property
    def distinct(self) -> bool:
        """Return whether no row stands here twice: readers need not look."""
        return self.clean and not self.unsaid

    def apply(self, entry: Entry) -> bool:
        """Go one version on; whether a snapshot is due at it."""
        self.version += 1
        if entry.kind == "replace":
            self.parts = 0
            self.txns = {}
            self.clean, self.unsaid = True, False
            if self.files is not None:
                self.files.clear()
        if entry.schema is not None:
            self.evolved = entry.kind not in ("create", "replace")
            self.schema = entry.schema
        if entry.inputs is not None:
            self.inputs = entry.inputs
        if entry.kind in ("create", "replace"):
            self.primary_key = entry.primary_key
        self.newest = max(self.newest, entry.newest or 0)
        if entry.kind in ("create", "begin", "replace"):
            if entry.run != self.run:  # else it goes on
                self.clean, self.unsaid = self.clean and not self.unsaid, False
            self.run, self.ended = entry.run, None
        elif entry.kind == "end":
            self.ended = entry.ok
            self.clean, self.unsaid = self.clean and (entry.distinct is True or not self.unsaid), False
        elif entry.kind == "rows":
            self.unsaid = self.unsaid or entry.distinct is not True
        if entry.txn is not None:
            self.txns.setdefault(entry.txn.app, Epochs()).add(entry.txn.epoch)
        self.parts += len(entry.add) - len(entry.remove)
        if self.files is not None:
            for name in entry.remove:
                self.files.pop(name, None)
            for part in entry.add:
                self.files[part.path] = part
        if self.version - self.snapshot_at >= max(SNAPSHOT_EVERY, self.parts // 16):
            self.snapshot_at = self.version
            return True
        return False


def encode_snapshot(state: TableState) -> bytes:
    """The bytes of a snapshot; `state` keeps its files."""
    assert state.files is not None
    return seal(
        {
            "format": format_of(state.primary_key),
            "version": state.version,
            "schema": schema_to_json(state.schema),
            "run": state.run,
            "ended": state.ended,
            "clean": state.clean,
            "unsaid": state.unsaid,
            "evolved": state.evolved,
            "inputs": inputs_to_json(state.inputs),
            "txns": {app: epochs.ranges() for app, epochs in state.txns.items()},
            "files": [
                [part.path, part.rows, part.bytes, *([True] if part.base else [])] for part in state.files.values()
            ],
            **({"primary_key": list(state.primary_key), "newest": state.newest} if state.primary_key else {}),
        }
    )


def decode_snapshot(data: bytes, path: str, keep_files: bool = True) -> TableState:
    """The state in `data`; SinkError, which names `path`, when it is none."""
    value: dict[str, Any] = unseal(data, path)
    state = TableState(keep_files)
    try:
        state.version = state.snapshot_at = int(value["version"])
        state.schema = schema_from_json(value["schema"])
        state.run, state.ended = value["run"], value["ended"]
        state.clean, state.unsaid = value.get("clean") is True, value.get("unsaid") is not False
        state.evolved = value.get("evolved") is True
        state.inputs = inputs_from_json(value.get("inputs") or [])
        state.txns = {app: Epochs(ranges) for app, ranges in value["txns"].items()}
        state.parts = len(value["files"])
        state.primary_key = tuple(map(str, value.get("primary_key") or ()))
        state.newest = int(value.get("newest") or 0)
        if keep_files:
            state.files = {name: Part(plain_name(name), *rest) for name, *rest in value["files"]}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SinkError(f"{path} is damaged: a member is missing or wrong ({error})") from None
    return state
