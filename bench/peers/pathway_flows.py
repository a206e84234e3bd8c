"""The same workloads in Pathway, run in a process of its own; prints one line of JSON.

python -m bench.peers.pathway_flows words LOAD PASSES [--threads 2]

User code in Python, per tuple: a `pw.udf` that Pathway calls with up to CALL rows at a time (a call for each row was slower);
the keyed count or sum is Pathway's own, in Rust. One update per key per micro-batch (M): a retraction and an insertion, of
which the insertions are counted, in Python, by `pw.io.subscribe`. With two threads Pathway may take the whole load into one
micro-batch: `batches` says how many there were.

Pathway reads the load itself, in streaming mode, from plain text that was just written, a file for each pass: it takes rows out of
Python's memory through a connector in Python, at half the rate. It puts results out late, a batch many seconds after
it came in, so the rate ("steady") is from the first call of user code, not from the first result, to the last result out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from typing import Any

from bench.kit.steady import steady
from bench.workloads.loads import LENGTH, final, read
from bench.workloads.plain import plain

__all__ = ["run"]

#: rows in one call of user code
CALL = 1000
#: a micro-batch ends after so long, milliseconds, or with a file
BATCH_MS = 100


class _Seen:
    """The rows that come out, and their times."""

    def __init__(self) -> None:
        self.begun = self.first = self.last = 0.0
        self.rows = self.batches = self.sum = 0
        self.final: dict[str, int] = {}

    def start(self) -> None:
        """At each call of user code."""
        self.begun = self.begun or time.time()

    def change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """For `pw.io.subscribe`: what a key had before is taken back."""
        if is_addition:
            self.sum += row["n"] - self.final.get(row["k"], 0)
            self.final[row["k"]] = row["n"]
            self.rows += 1

    def batch_over(self) -> None:
        self.last = time.time()
        self.first = self.first or self.last
        self.batches += 1

    def result(self, tuples: int) -> dict[str, Any]:
        """Return what is printed."""
        figures = {"rows": self.rows, "first": self.first, "last": self.last, "batches": self.batches}
        return {**figures, "steady": steady(tuples, self.begun, self.last), "final": self.final}


def _flow(what: str, folder: str, seen: _Seen) -> Any:
    """A table of counts or sums."""
    import pathway as pw

    source: dict[str, Any] = {"mode": "streaming", "autocommit_duration_ms": BATCH_MS}
    if what == "words":
        lines = pw.io.fs.read(folder, format="plaintext", **source)

        @pw.udf(deterministic=True, max_batch_size=CALL)
        def split(lines: list[str]) -> list[list[str]]:
            seen.start()
            return [line.split() for line in lines]

        words = lines.select(k=split(pw.this.data)).flatten(pw.this.k)
        return words.groupby(pw.this.k).reduce(pw.this.k, n=pw.reducers.count())

    @pw.udf(deterministic=True, max_batch_size=CALL)
    def add(values: list[int]) -> list[int]:
        seen.start()
        return [value + 1 for value in values]

    @pw.udf(deterministic=True, max_batch_size=CALL)
    def even(values: list[int]) -> list[bool]:
        return [value % 2 == 0 for value in values]

    csv = pw.io.CsvParserSettings(delimiter="\t")
    schema = pw.schema_from_types(k=str, v=int)
    numbers = pw.io.csv.read(folder, schema=schema, csv_settings=csv, **source)
    kept = numbers.select(pw.this.k, v=add(pw.this.v)).filter(even(pw.this.v))
    return kept.groupby(pw.this.k).reduce(pw.this.k, n=pw.reducers.sum(pw.this.v))


def _files(what: str, load: str, passes: int, folder: str) -> int:
    """A file for each pass, by links to the first one; how many rows each has."""
    first = os.path.join(folder, "0")
    rows = plain(load, first)
    if what == "sums":
        with open(first) as file:
            text = file.read()
        with open(first, "w") as file:
            file.write("k\tv\n" + text)
    for i in range(1, passes):
        os.link(first, os.path.join(folder, str(i)))
    return rows


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "sums"])
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["PATHWAY_THREADS"] = str(arguments.threads)
    import pathway as pw

    seen = _Seen()
    expected = sum(final(read(arguments.load), arguments.passes).values())
    folder = tempfile.mkdtemp(prefix="bench-pathway-")

    def batch_over(time: int) -> None:
        seen.batch_over()
        if seen.sum >= expected:
            print(json.dumps(seen.result(tuples)), flush=True)
            shutil.rmtree(folder)
            os._exit(0)  # a stream of files has no end, and what it runs in cannot be stopped from here

    try:
        tuples = _files(arguments.what, arguments.load, arguments.passes, folder) * arguments.passes
        tuples *= LENGTH if arguments.what == "words" else 1
        pw.io.subscribe(_flow(arguments.what, folder, seen), on_change=seen.change, on_time_end=batch_over)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(f"Pathway ended at a sum of {seen.sum:,} in place of {expected:,}")


if __name__ == "__main__":
    run()
