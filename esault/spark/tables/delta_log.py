"""A log of Delta Lake beside ours, over the same Parquet files: for engines that read Delta. Source: Delta's transaction log protocol.

Our log stays the truth. After each update the Delta log gets one version, the difference between the files that it names
and those of our newest version; so one that a kill kept from being written is in the next. Files are named as they lie,
without partition columns: they hold all columns themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from esault.errors import SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.disk import LocalDisk, explained
from esault.sinks.landing.entry import Part
from esault.sinks.landing.schema import Schema
from esault.version import VERSION

__all__ = ["publish"]

_FOLDER = "_delta_log"


def publish(table: str, now: Callable[[], float] = time.time) -> int | None:
    """Write what is new in our table in folder `table` into its Delta log; its version, None when nothing was.

    SinkError: the disk refuses, or another writer has written there.
    """
    disk = LocalDisk()
    folder = os.path.join(table, _FOLDER)
    state = table_log(table).at()
    assert state.files is not None
    version, active, schema = _read(folder)
    wanted = {quote(path): part for path, part in state.files.items()}
    columns = _schema_string(state.schema)
    if version >= 0 and active == wanted.keys() and schema == columns:
        return None
    at = int(now() * 1000)
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": at,
                "operation": "WRITE",
                "engineInfo": f"eSault/{VERSION}",
                "esault": state.version,
            }
        }
    ]
    if version < 0:
        actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    if schema != columns:
        actions.append({"metaData": _metadata(table, columns, at)})
    actions += [
        {"remove": {"path": path, "deletionTimestamp": at, "dataChange": True}}
        for path in sorted(active - wanted.keys())
    ]
    actions += [{"add": _add(path, part, at)} for path, part in wanted.items() if path not in active]
    data = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions).encode()
    path = os.path.join(folder, f"{version + 1:020d}.json")
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
    return version + 1


def _read(folder: str) -> tuple[int, set[str], str | None]:
    """The version of the Delta log, -1 when there is none; the files that it names, and its columns. SinkError."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[:-5].isdigit())
    except FileNotFoundError:
        return -1, set(), None
    active: set[str] = set()
    schema = None
    for number, name in enumerate(names):
        if int(name[:-5]) != number:
            raise SinkError(
                f"{folder} begins or goes on with {name}: entries are missing, so it cannot be gone on with"
            )
        with explained("reading", folder), open(os.path.join(folder, name), encoding="utf-8") as file:
            for line in file:
                action: Mapping[str, Any] = json.loads(line)
                if "add" in action:
                    active.add(action["add"]["path"])
                elif "remove" in action:
                    active.discard(action["remove"]["path"])
                elif "metaData" in action:
                    schema = action["metaData"]["schemaString"]
    return len(names) - 1, active, schema


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


def _add(path: str, part: Part, at: int) -> dict[str, Any]:
    made: dict[str, Any] = {"path": path, "partitionValues": {}, "size": part.bytes, "modificationTime": at}
    return {**made, "dataChange": True, "stats": json.dumps({"numRecords": part.rows})}
