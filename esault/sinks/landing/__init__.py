"""Landed tables: Parquet parts in a folder, and the log that says which of them are the table. No Spark in here.

| module | holds |
|---|---|
| `table` | the sink: check, begin, write, prepare, commit |
| `log`, `entry`, `state` | the commit log: numbered entries, and the snapshots that spare reading them all |
| `schema`, `values`, `arrow`, `buffer` | from Python values to Parquet |
| `lock`, `vacuum`, `disk` | one run at a time; what may be removed; the file operations |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from esault.errors import SinkError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.landing.log import LOG_FOLDER, CommitLog
from esault.sinks.landing.object_disk import ObjectDisk
from esault.sinks.landing.vacuum import SAFE_AGE, Vacuumed, vacuum

__all__ = ["LOG_FOLDER", "SAFE_AGE", "CommitLog", "NoTableError", "Vacuumed", "parts", "table_log", "vacuum"]


class NoTableError(SinkError):
    """There is no table at this place."""


def table_log(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> CommitLog:
    """The log of the table in folder `path`, or at an address such as s3://bucket/t, read; NoTableError; SinkError where it is another kind of table."""
    folder = os.path.expanduser(local_path(os.fspath(path)))
    far = is_url(folder)
    if far:
        folder = folder.rstrip("/")
    log = CommitLog(folder, ObjectDisk(folder, storage_options) if far else None)
    if not log.exists():
        if far:
            raise NoTableError(
                f"no table at {folder}: there is no log of eSault. Run the topology that writes it first"
            )
        if not os.path.isdir(folder):
            raise NoTableError(f"no table at {folder}: there is no such folder. Run the topology that writes it first")
        if os.path.isdir(os.path.join(folder, "_delta_log")):
            raise SinkError(f"{folder} is a Delta Lake table, and no table of eSault")
        raise NoTableError(
            f"no table at {folder}: the folder has no log of eSault ({LOG_FOLDER}). Is it another folder's name?"
        )
    return log


def parts(
    path: str | os.PathLike[str], version: int | None = None, *, storage_options: Mapping[str, Any] | None = None
) -> list[str]:
    """Paths of the Parquet files that are the table in folder `path`, or addresses of those at s3:// and the like, for any reader of Parquet.

    `version`: as the table was then. Rows that a replay repeated are still in them (same `_run` and `_id`). SinkError
    when there is no table, or no such version.
    """
    log = table_log(path, storage_options)
    return [os.path.join(log.table, part.path) for part in log.files(version)]
