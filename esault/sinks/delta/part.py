"""Staged parts of a Delta table: Parquet files that no version names yet, with what their `add` action will say."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from esault.errors import SinkError
from esault.sinks.landing.arrow import parquet_bytes
from esault.sinks.landing.disk import Disk, explained
from esault.sinks.landing.merge import codes
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.values import short

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARTITION_TYPES", "StagedPart", "stage", "staging"]

#: column types whose values are texts that Delta defines and every reader understands
PARTITION_TYPES: dict[str, Callable[[Any], str]] = {
    "string": str,
    "long": str,
    "boolean": lambda value: "true" if value else "false",
    "date": str,
}
#: Hive's name for null in the name of a folder
_NULL = "__HIVE_DEFAULT_PARTITION__"
#: bytes of a name on the disks that there are
_LONGEST_NAME = 255
#: characters of a text in statistics: longer ones would have to be cut
_LONGEST = 32


@dataclass(frozen=True)
class StagedPart:
    """One file; it stands in the staging folder under `name` until it is committed."""

    name: str
    #: folder within the table, such as `day=2026-01-31`; "" where the table has no partitions
    folder: str
    #: partition column -> value as text; None: null
    partition: dict[str, str | None]
    bytes: int
    rows: int
    #: Delta's statistics, as JSON
    stats: str

    def to_json(self) -> dict[str, Any]:
        """As it travels in a handle."""
        return asdict(self)


def staging(table: str, lineage: str) -> str:
    """The folder for parts that wait for their commit. Delta passes over folders that begin with an underscore."""
    return os.path.join(table, "_esault_staged", quote(lineage, safe="") or "local")


def stage(folder: str, rows: pa.Table, schema: Schema, partition_by: Sequence[str], disk: Disk) -> list[StagedPart]:
    """Write rows as durable files, one for each partition. Their names in `folder` are not durable yet. Raises SinkError."""
    kinds = {column.name: column.type for column in schema}
    with explained("making", folder):
        disk.make_folder(folder)
    parts = []
    for values, piece in _split(rows, partition_by):
        texts = {name: None if value is None else PARTITION_TYPES[kinds[name]](value) for name, value in values.items()}
        folders = [_folder(name, text) for name, text in texts.items()]
        data = parquet_bytes(piece)
        name = f"part-{os.urandom(16).hex()}.parquet"
        path = os.path.join(folder, name)
        with explained("writing", path):
            disk.write_new(path, memoryview(data))
        parts.append(StagedPart(name, "/".join(folders), texts, data.size, piece.num_rows, _stats(piece, kinds)))
    return parts


def _folder(name: str, text: str | None) -> str:
    """Return the name of the folder of a partition. Raises SinkError for one that no disk takes: only the commit would find out."""
    folder = f"{_escaped(name)}={_NULL if text is None else _escaped(text)}"
    if len(folder) > _LONGEST_NAME:
        raise SinkError(
            f"DeltaSink: column {name!r} holds a text of {len(text or '')} characters, {short(text)}, too long for a folder's name "
            "(partition_by); divide the table by a column with shorter ones"
        )
    return folder


def _escaped(text: str) -> str:
    # a folder of the name "." or ".." would be another one
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _split(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of each partition in their order, without the columns that it is named by."""
    import pyarrow.compute as pc

    if not by:
        yield {}, rows
        return
    numbers = codes(rows, by)
    order = pc.sort_indices(numbers)
    rest = rows.drop_columns(list(by))
    start = 0
    for end in pc.run_end_encode(numbers.take(order)).run_ends.to_pylist():
        first = order[start].as_py()
        yield {name: rows[name][first].as_py() for name in by}, rest.take(order.slice(start, end - start))
        start = end


def _moment(value: datetime) -> str:
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


#: column type -> what stands for a least or greatest value; None: it is left out
_SAID: dict[str, Callable[[Any], Any]] = {
    "long": int,
    "double": _finite,
    "date": date.isoformat,
    "timestamp": _moment,
    "string": lambda text: text if len(text) <= _LONGEST else None,
}


def _stats(rows: pa.Table, kinds: dict[str, str]) -> str:
    """The statistics that readers skip a file by: its rows, nulls of each column, least and greatest values."""
    import pyarrow.compute as pc

    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for name in rows.schema.names:
        said = _SAID.get(kinds.get(name, ""))
        if said is None or (kinds[name] == "double" and pc.any(pc.is_nan(rows[name]), min_count=0).as_py()):
            continue
        both = pc.min_max(rows[name]).as_py()
        if both["min"] is None:
            continue
        low, high = said(both["min"]), said(both["max"])
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    nulls = {name: rows[name].null_count for name in rows.schema.names}
    return json.dumps({"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls})
