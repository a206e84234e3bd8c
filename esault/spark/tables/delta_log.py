"""A log of Delta Lake beside ours, over the same Parquet files: for engines that read Delta. Source: Delta's transaction log protocol.

Our log stays the truth. After each update the Delta log gets the difference between the files that it names and those of
our newest version; so what a kill kept from being written is in the next. A compaction has a version of its own there,
which says that no row changed (`dataChange` is false): a stream that reads the table passes over it. Files are named as
they lie, without partition columns: they hold all columns themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from esault.errors import SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.disk import LocalDisk, explained
from esault.sinks.landing.entry import Part
from esault.sinks.landing.log import CommitLog
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState
from esault.version import VERSION

__all__ = ["publish"]

_FOLDER = "_delta_log"


def publish(table: str, now: Callable[[], float] = time.time) -> int | None:
    """Write what is new in our table in folder `table` into its Delta log; its version, None when nothing was.

    SinkError: the disk refuses, or another writer has written there.
    """
    log, folder = table_log(table), os.path.join(table, _FOLDER)
    newest = log.at()
    said = _read(folder, log)
    wrote = None
    for state, compacts in _steps(log, said.ours, newest):
        if (next_ := _write(table, said, state, compacts, int(now() * 1000))) is not None:
            said, wrote = next_, next_.version
    return wrote


@dataclass(frozen=True)
class _Said:
    """The Delta log: its version, -1 where there is none; the files it names, with their rows; its columns, and our version."""

    version: int = -1
    files: Mapping[str, int] = field(default_factory=dict)
    schema: str | None = None
    ours: int | None = None


def _steps(log: CommitLog, since: int | None, newest: TableState) -> Iterator[tuple[TableState, bool]]:
    """States to write, one after the other, the newest last; and whether what led there is compaction alone."""
    if since is None or since >= newest.version:
        yield newest, False
        return
    try:
        kinds = [(version, entry.kind == "compact") for version, entry in log.entries(since, newest.version)]
        for compacts, group in itertools.groupby(kinds, key=lambda each: each[1]):
            last = [version for version, _ in group][-1]
            yield newest if last == newest.version else log.at(last), compacts
    except SinkError:  # entries are gone: what happened since cannot be told apart
        yield newest, False


def _write(table: str, said: _Said, state: TableState, compacts: bool, at: int) -> _Said | None:
    assert state.files is not None
    disk, folder = LocalDisk(), os.path.join(table, _FOLDER)
    wanted = {quote(path): part for path, part in state.files.items()}
    columns = _schema_string(state.schema)
    if said.version >= 0 and said.files.keys() == wanted.keys() and said.schema == columns:
        return None
    rows = {path: part.rows for path, part in wanted.items()}
    removed, added = sorted(said.files.keys() - wanted.keys()), [path for path in wanted if path not in said.files]
    # Of a table with a primary key, or without duplicates, fewer rows are left.
    changes = not compacts or sum(said.files.values()) != sum(rows.values())
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": at,
                "operation": "WRITE" if changes else "OPTIMIZE",
                "engineInfo": f"eSault/{VERSION}",
                "esault": state.version,
            }
        }
    ]
    if said.version < 0:
        actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    if said.schema != columns:
        actions.append({"metaData": _metadata(table, columns, at)})
    actions += [{"remove": {"path": path, "deletionTimestamp": at, "dataChange": changes}} for path in removed]
    actions += [{"add": _add(path, wanted[path], at, changes)} for path in added]
    data = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions).encode()
    path = os.path.join(folder, f"{said.version + 1:020d}.json")
    scratch = os.path.join(folder, f".{os.urandom(8).hex()}.tmp")
    with explained("writing", path):
        disk.make_folder(folder)
        disk.write_new(scratch, data)
        try:
            if not disk.link(scratch, path):
                raise SinkError(f"{path} is there already: another writer has written the table's Delta log")
        finally:
            with contextlib.suppress(OSError):
                disk.remove(scratch)
        disk.sync_folder(folder)
    return _Said(said.version + 1, rows, columns, state.version)


def _read(folder: str, log: CommitLog) -> _Said:
    """Return what the Delta log says. SinkError.

    Behind an entry of ours it names the files of our version: then no other is read, of which there may be many thousands.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[:-5].isdigit())
    except FileNotFoundError:
        return _Said()
    active: dict[str, int] = {}
    schema, ours = None, None
    for number, name in enumerate(names):
        if int(name[:-5]) != number:
            raise SinkError(
                f"{folder} begins or goes on with {name}: entries are missing, so it cannot be gone on with"
            )
    if names and (ours_alone := _behind_ours(os.path.join(folder, names[-1]), log)) is not None:
        return ours_alone
    for name in names:
        for action in _actions(os.path.join(folder, name)):
            if "add" in action:
                stats = json.loads(action["add"].get("stats") or "{}")  # another writer may say none
                active[action["add"]["path"]] = stats.get("numRecords", 0)
            elif "remove" in action:
                active.pop(action["remove"]["path"], None)
            elif "metaData" in action:
                schema = action["metaData"]["schemaString"]
            elif "commitInfo" in action:
                ours = action["commitInfo"].get("esault")
    return _Said(len(names) - 1, active, schema, ours)


def _behind_ours(newest: str, log: CommitLog) -> _Said | None:
    """Return what the Delta log says behind its newest entry, if we have written that and still know what our table was then."""
    actions = list(_actions(newest))
    ours = next((action["commitInfo"].get("esault") for action in actions if "commitInfo" in action), None)
    if ours is None:
        return None
    try:
        state = log.at(ours)
    except SinkError:
        return None
    assert state.files is not None
    rows = {quote(path): part.rows for path, part in state.files.items()}
    if any(action["add"]["path"] not in rows for action in actions if "add" in action):
        return None  # of another life of the table
    return _Said(int(os.path.basename(newest)[:-5]), rows, _schema_string(state.schema), ours)


def _actions(path: str) -> Iterator[Mapping[str, Any]]:
    with explained("reading", path), open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _metadata(table: str, columns: str, at: int) -> dict[str, Any]:
    identity = uuid.uuid5(uuid.NAMESPACE_URL, os.path.abspath(table))
    made: dict[str, Any] = {
        "id": str(identity),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns,
    }
    return {**made, "partitionColumns": [], "configuration": {}, "createdTime": at}


def _schema_string(schema: Schema) -> str:
    fields = [{"name": c.name, "type": c.type, "nullable": True, "metadata": {}} for c in schema]
    return json.dumps({"type": "struct", "fields": fields})


def _add(path: str, part: Part, at: int, changes: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"path": path, "partitionValues": {}, "size": part.bytes, "modificationTime": at}
    return {**made, "dataChange": changes, "stats": json.dumps({"numRecords": part.rows})}
