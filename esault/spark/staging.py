"""Rows that Spark's tasks write into a table's folder, as parts that no reader sees until an entry of the log names them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esault.sinks.landing.disk import Disk, explained
from esault.sinks.landing.entry import Part
from esault.spark.settings import settings
from esault.state.files import sync_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["clear", "stage", "writing"]

#: as esault writes parts itself: instants in UTC with microseconds, by the calendar of today. What cannot be read is an error, whatever
#: a user's settings say: rows that are left out in silence would be lost
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def writing(spark: SparkSession) -> contextlib.AbstractContextManager[None]:
    """Return the settings with which tables are read and written, for the time of a block."""
    return settings(spark, _SETTINGS)


def clear(table: str, prefix: str, disk: Disk, before: float | None = None) -> None:
    """Remove what one that was killed has left in folders with this prefix, or those of them that are as old. Raises SinkError: the disk refuses."""
    with explained("reading", table):
        for name in disk.names(table):
            path = os.path.join(table, name)
            with contextlib.suppress(FileNotFoundError):  # its owner was just done with it
                if name.startswith(prefix) and (before is None or disk.modified(path) < before):
                    shutil.rmtree(path, ignore_errors=True)


def stage(
    frame: DataFrame, table: str, disk: Disk, prefix: str, folders: Sequence[str] = (), within: str = ""
) -> list[Part]:
    """Have Spark write rows as parts of `table`, in its folder `within`; they pass a folder with this prefix.

    `folders`: names of the folders' columns; their values are in the frame's columns `_folder0`, `_folder1`, ...,
    which are not kept. Raises what Spark raises; SinkError when the disk refuses.
    """
    staging = os.path.join(table, f"{prefix}{os.urandom(8).hex()}")
    columns = [f"_folder{i}" for i in range(len(folders))]
    try:
        # ids are all different: a dictionary of them would be built only to be thrown away
        frame.write.option("parquet.enable.dictionary#_id", "false").partitionBy(*columns).parquet(
            f"file://{os.path.abspath(staging)}"
        )
        with explained("writing", table):
            return list(_move(staging, table, disk, dict(zip(columns, folders)), within))
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(staging: str, table: str, disk: Disk, names: dict[str, str], within: str) -> Iterator[Part]:
    """Give what Spark wrote its durable place and name."""
    import pyarrow.parquet as pq

    made: set[str] = set()
    for folder, _, files in os.walk(staging):
        levels = [] if folder == staging else os.path.relpath(folder, staging).split(os.sep)
        if any(level.partition("=")[0] not in names for level in levels):
            continue  # Spark's own
        below = [f"{names[column]}={value}" for column, _, value in (level.partition("=") for level in levels)]
        target = "/".join(filter(None, [within, *below]))
        for file in sorted(files):  # as Spark numbers them: in the order of the rows
            if not file.endswith(".parquet"):
                continue
            path = os.path.join(folder, file)
            rows = pq.read_metadata(path).num_rows
            if rows == 0:
                continue
            if target not in made:
                made.add(target)
                disk.make_folder(os.path.join(table, target))
            sync_file(Path(path))
            part = Part(os.path.join(target, f"part-{os.urandom(16).hex()}.parquet"), rows, os.path.getsize(path))
            disk.rename(path, os.path.join(table, part.path))
            yield part
    for target in made:
        disk.sync_folder(os.path.join(table, target))
