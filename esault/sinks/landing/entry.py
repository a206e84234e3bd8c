"""One entry of a table's log: what changed from one version to the next.

An entry is one JSON object on one line, whose last member is the CRC-32 of all before it:

```
{"format":1,"kind":"rows","time":"2026-01-01T00:00:00Z","run":"r1","txn":{"app":"r1/count/0","epoch":7},
 "add":[{"path":"part-5f….parquet","rows":1000,"bytes":9182}],"remove":[],"schema":null,"crc32":"1c291ca3"}
```

| kind | says | members that matter |
|---|---|---|
| create | the table begins; version 0, and only that | schema, run, primary_key |
| begin | a run begins to write: writers of earlier runs are refused from here | run |
| replace | as begin, and no row of before is visible any more | schema, run, primary_key |
| rows | rows of one epoch of one writer; of a job also in place of others | txn, add, remove, run, newest |
| compact | parts rewritten as others, rows the same (of a primary key: the newest of each) | add, remove |
| end | the run said it was over, and whether each of its rows came once | run, ok, distinct |

A `begin` or `rows` entry with a schema changes the columns from there on (see `evolve`). The path of a part may lead
through folders named `column=value`. A table that a job makes of others says in `inputs` of what; its `rows` and
`replace` entries say `distinct` themselves.

A table with a primary key has format 2, which an eSault that would show each update as a row refuses. Its `rows` say in
`newest` what is the greatest `_updated` among them; parts of one whole compaction are `base`: no two of them hold a key.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from esault.errors import SinkError
from esault.sinks.landing.schema import Schema, schema_from_json, schema_to_json

__all__ = [
    "FORMAT",
    "Entry",
    "Input",
    "Part",
    "Txn",
    "decode",
    "encode",
    "format_of",
    "inputs_from_json",
    "inputs_to_json",
    "plain_name",
    "seal",
    "unseal",
]

#: the newest format of entries and snapshots that this code writes and reads
FORMAT = 2
#: that of tables without a primary key
_PLAIN_FORMAT = 1

_KINDS = frozenset({"create", "begin", "replace", "rows", "compact", "end"})
_CRC = ',"crc32":"'


@dataclass(frozen=True)
class Part:
    """One Parquet file of a table; `path` is its name in the table's folder."""

    path: str
    rows: int
    bytes: int
    #: made by a compaction of a whole table with a primary key: none of the others of that compaction has its keys
    base: bool = False


@dataclass(frozen=True)
class Txn:
    """One epoch of one writer; never visible twice."""

    app: str
    epoch: int


@dataclass(frozen=True)
class Input:
    """An input of a job: all of the table `name` up to `version`; `mark` tells histories with equal numbers apart."""

    name: str
    version: int
    mark: str = ""


@dataclass(frozen=True)
class Entry:
    """See the module."""

    kind: str
    time: str = ""
    run: str | None = None
    txn: Txn | None = None
    add: tuple[Part, ...] = ()
    remove: tuple[str, ...] = ()
    schema: Schema | None = None
    ok: bool | None = None
    distinct: bool | None = None
    inputs: tuple[Input, ...] | None = None
    #: of a `create` or `replace`: the columns of whose values there is one row, the newest; empty: all rows are there
    primary_key: tuple[str, ...] = ()
    #: the greatest `_updated`, microseconds since the epoch
    newest: int | None = None


def plain_name(name: Any) -> str:
    """The path of a part in its table's folder, `part-….parquet` or `column=value/part-….parquet`; ValueError for one
    that would lead elsewhere: names in a file are never trusted."""
    if not isinstance(name, str) or not name or "\\" in name or name.startswith("/"):
        raise ValueError(f"{name!r} is no name of a part")
    *folders, last = name.split("/")
    if last in ("", ".", "..") or any(not folder.partition("=")[0] or "=" not in folder for folder in folders):
        raise ValueError(f"{name!r} is no name of a part")
    return name


def seal(value: dict[str, Any]) -> bytes:
    """JSON with its checksum as the last member."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)[:-1]
    return f'{text}{_CRC}{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def unseal(data: bytes, path: str) -> dict[str, Any]:
    """The reverse of `seal`; SinkError for damage, a foreign file and a newer format."""
    try:
        text, mark, crc = data.decode().rpartition(_CRC)
        value = json.loads(data)
    except ValueError:
        raise _damaged(path, "it is no JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("format"), int):
        raise SinkError(f"{path} was not written by eSault; move it away, or name the folder of an eSault table")
    if value["format"] > FORMAT:
        raise SinkError(
            f"{path} was written by a newer eSault (format {value['format']}; this one knows up to {FORMAT}): "
            "pip install -U esault"
        )
    if not mark or crc != f'{zlib.crc32(text.encode()):08x}"}}\n':
        raise _damaged(path, "its checksum does not match")
    return value


def _damaged(path: str, why: str) -> SinkError:
    return SinkError(f"{path} is damaged: {why}. Restore it from a backup, or write the table anew in another folder")


def encode(entry: Entry) -> bytes:
    """The bytes of an entry."""
    return seal(
        {
            "format": format_of(entry.primary_key),
            "kind": entry.kind,
            "time": entry.time,
            "run": entry.run,
            "txn": {"app": entry.txn.app, "epoch": entry.txn.epoch} if entry.txn else None,
            "add": [
                {"path": part.path, "rows": part.rows, "bytes": part.bytes, **({"base": True} if part.base else {})}
                for part in entry.add
            ],
            "remove": list(entry.remove),
            "schema": schema_to_json(entry.schema) if entry.schema is not None else None,
            "ok": entry.ok,
            **({} if entry.distinct is None else {"distinct": entry.distinct}),
            **({} if entry.inputs is None else {"inputs": inputs_to_json(entry.inputs)}),
            **({} if not entry.primary_key else {"primary_key": list(entry.primary_key)}),
            **({} if entry.newest is None else {"newest": entry.newest}),
        }
    )


def format_of(primary_key: tuple[str, ...]) -> int:
    """Return the format of what says that a table has this primary key."""
    return FORMAT if primary_key else _PLAIN_FORMAT


def inputs_to_json(inputs: tuple[Input, ...]) -> list[list[Any]]:
    """`[[name, version, mark], ...]`."""
    return [[one.name, one.version, one.mark] for one in inputs]


def inputs_from_json(value: Any) -> tuple[Input, ...]:
    """The reverse; TypeError or ValueError when it is none."""
    return tuple(Input(str(name), int(version), str(mark)) for name, version, mark in value)


def decode(data: bytes, path: str) -> Entry:
    """The entry in `data`; SinkError, which names `path`, when it is none."""
    value = unseal(data, path)
    try:
        if value["kind"] not in _KINDS:
            raise ValueError(f"its kind {value['kind']!r} is not known")
        txn = value["txn"]
        entry = Entry(
            kind=value["kind"],
            time=str(value["time"]),
            run=value["run"],
            txn=Txn(str(txn["app"]), int(txn["epoch"])) if txn else None,
            add=tuple(
                Part(plain_name(part["path"]), int(part["rows"]), int(part["bytes"]), part.get("base") is True)
                for part in value["add"]
            ),
            remove=tuple(plain_name(name) for name in value["remove"]),
            schema=schema_from_json(value["schema"]) if value["schema"] is not None else None,
            ok=value.get("ok"),
            distinct=value.get("distinct"),
            inputs=inputs_from_json(value["inputs"]) if value.get("inputs") is not None else None,
            primary_key=tuple(map(str, value.get("primary_key") or ())),
            newest=None if value.get("newest") is None else int(value["newest"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"a member is missing or wrong ({error})") from None
    return entry
