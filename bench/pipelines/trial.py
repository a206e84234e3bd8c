"""`esault analyze` under kill -9: it is started until it ends, rows land meanwhile, and its tables are compared with a plain loop.

It is one module of over 300 lines: a trial is one story, from the first rows to the comparison.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

import esault
from bench.pipelines.topology import CHANGES, SALES
from esault.sinks.landing import table_log
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import RunInfo

__all__ = ["Lost", "Trial", "wanted"]

ROOT = Path(__file__).parents[2]
TOPOLOGY = Path(__file__).with_name("topology.py")
#: seconds until a command must have ended
PATIENCE = 1800.0
#: what a command says when its first job has something to do
BEGINS = "clean "
#: what is killed: the command alone, whose Java lives on until it sees that, or all of its processes at once
KINDS = ("the command", "the command and its Java")
#: kills within one command at most of what it works with
VOLLEY = 6

_Rows = list[tuple[Any, ...]]


class Lost(Exception):
    """A command that failed by itself, or does not end."""


class Trial:
    """See the module. `prefix`: what commands begin with, `options`: for `esault analyze`; `seed` decides rows and kills.

    `helpers`: kind -> what kills one of those that the command works with, and says whether there was one. The command must come to its
    end in spite of that.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        rows: int,
        prefix: Sequence[str] = (),
        options: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        helpers: Mapping[str, Callable[[random.Random], bool]] | None = None,
    ) -> None:
        self.folder = folder
        self._order = random.Random(seed)
        self._helpers = dict(helpers or {})
        self._rows = rows
        self._command = [
            *prefix,
            *(sys.executable, "-m", "esault", "analyze", f"{TOPOLOGY}:topology", "--set", f"folder={folder}"),
            *("--into", str(folder / "into"), *options),
        ]
        self._environ = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._landings = 0
        #: seconds that a command takes in all, and behind its start
        self._whole, self._work = 60.0, 30.0
        self.landed: dict[str, _Rows] = {"sales": [], "changes": []}
        self.commands = self.ended = 0
        self.kills: Counter[str] = Counter()
        #: kills by what the command had said last
        self.moments: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()

    # rows --------------------------------------------------------------------------------------------

    def land(self) -> None:
        """Land some rows more, some of which are repeated."""
        order, self._landings = self._order, self._landings + 1
        n = order.randint(1, self._rows)
        sales = [
            (order.choice(["a", "b", "c", "d", ""]), order.randint(-2, 9), f"{order.randint(1, 4)}") for _ in range(n)
        ]
        at = 1_000_000 * self._landings
        changes = [
            # some are older than those of landings before
            (
                order.randint(1, 40),
                order.choice(["x", "y", None]),
                at + 1000 * i - order.choice([0, 0, 1_500_001]),
                order.choice("uud"),
            )
            for i in range(order.randint(1, max(1, self._rows // 4)))
        ]
        for name, columns, rows in (("sales", SALES, sales), ("changes", CHANGES, changes)):
            self._land(name, columns, rows)
            self.landed[name] += rows

    def _land(self, name: str, columns: Mapping[str, Any], rows: _Rows) -> None:
        path, run = self.folder / "landed" / name, f"r{self._landings}"
        driver = SparkTable(path, dict(columns), "append")
        driver.check()
        driver.begin(RunInfo(run, "shop", name))
        sink = SparkTable(path, dict(columns), "append")
        sink.open(Context("u", run=run))
        again = rows[: len(rows) // 10]
        ids = [f"{self._landings}-{i}" for i in range(len(rows))]
        for epoch, (some, named) in enumerate(((rows, ids), (again, ids[: len(again)]))):
            if some:
                sink.write_columns([row[0] for row in some], [row[1:] for row in some], 1_700_000_000.0, named)
                sink.commit(epoch, sink.prepare(epoch))
        driver.repeated = True
        driver.end(True)

    # commands ----------------------------------------------------------------------------------------

    def _start(self) -> subprocess.Popen[bytes]:
        self.commands += 1
        with (self.folder / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._process

    def _said(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    def _until(self, process: subprocess.Popen[bytes], end: float, said: str | None = None) -> bool:
        """Wait until the command has ended (True), has said this, or it is that late."""
        while process.poll() is None and time.monotonic() < end and (said is None or said not in self._said()):
            time.sleep(0.02)
        return process.poll() is not None

    def end(self) -> None:
        """Let a command come to its end. Raises Lost."""
        begun = time.monotonic()
        process = self._start()
        self._until(process, begun + PATIENCE, BEGINS)
        worked = time.monotonic()
        if not self._until(process, begun + PATIENCE):
            raise Lost(f"esault analyze does not end: {self._said()[-2000:]}")
        self._has_ended(process)
        self._took(begun, worked)

    def _has_ended(self, process: subprocess.Popen[bytes]) -> None:
        if process.returncode:
            raise Lost(f"esault analyze ended with {process.returncode}: {self._said()[-3000:]}")
        self.ended += 1

    def _took(self, begun: float, worked: float) -> None:
        now = time.monotonic()
        if worked < now - 0.1:  # kills are drawn from what a command takes now: other work on the machine changes it
            self._whole, self._work = now - begun, now - worked

    def _note(self, kind: str) -> None:
        self.kills[kind] += 1
        lines = self._said().splitlines() or ["nothing"]
        self.moments[re.split(r": | \d| \.\.\.| \(", lines[-1].strip())[0]] += 1

    def _kill_helpers(self) -> None:
        """Start a command, kill some of those that it works with while it does, and let it come to its end. Raises Lost."""
        begun = time.monotonic()
        process = self._start()
        self._until(process, begun + PATIENCE, BEGINS)
        worked = time.monotonic()
        for late in sorted(self._order.uniform(0, self._work) for _ in range(self._order.randint(1, VOLLEY))):
            kind = self._order.choice(list(self._helpers))
            if self._until(process, worked + late):
                break
            if self._helpers[kind](self._order):
                self._note(kind)
        if not self._until(process, begun + PATIENCE):
            raise Lost(f"esault analyze does not end: {self._said()[-2000:]}")
        self._has_ended(process)

    def _kill_one(self) -> bool:
        """Start a command and kill it at some moment; False where it had ended before."""
        begun = time.monotonic()
        process = self._start()
        moment = begun + self._order.uniform(0, self._whole)
        kind = self._order.choice(KINDS)
        late = self._order.uniform(0, self._work)
        working = self._order.random() < 0.75  # most of what it does comes behind the start of Spark
        self._until(process, begun + PATIENCE if working else moment, BEGINS)
        worked = time.monotonic()
        if self._until(process, worked + late if working else moment):
            self._has_ended(process)
            self._took(begun, worked)
            return False
        self.stop(with_java=kind == KINDS[1])
        self._note(kind)
        return True

    def stop(self, with_java: bool = True) -> None:
        """Kill -9 the command, and what it has started."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        below = psutil.Process(process.pid).children(recursive=True) if with_java else []
        process.kill()
        process.wait()
        for each in below:
            try:
                each.kill()
            except psutil.Error:
                pass

    # all -------------------------------------------------------------------------------------------

    def run(
        self, kills: int, minutes: float = float("inf"), keep: Callable[[dict[str, Any]], None] = lambda found: None
    ) -> dict[str, Any]:
        """So many kills, none after so many minutes; then the end. `keep` is given the counts so far, whenever they have changed. Raises Lost."""
        begun = time.monotonic()
        self.land()
        self.end()
        self.check()
        self.land()
        while self.kills.total() < kills and time.monotonic() - begun < 60 * minutes:
            if self._helpers and self._order.random() < 0.5:
                self._kill_helpers()
                self.check()
                self.land()
            elif self._kill_one():
                if self._order.random() < 0.3:
                    self.land()
            else:
                self.check()
                self.land()
            print(
                f"  {self.kills.total()} of {kills} kills, {self.ended} of {self.commands} commands ended", flush=True
            )
            keep(self._found(begun, over=False))
        self.end()
        self.check()
        return self._found(begun, over=True)

    def _found(self, begun: float, over: bool) -> dict[str, Any]:
        """The counts. `over`: what was done behind the last kill has been compared, too."""
        return {
            "over": over,
            "kills": self.kills.total(),
            "by_kind": dict(self.kills),
            "by_moment": dict(self.moments),
            "commands": self.commands,
            "ended": self.ended,
            "landings": self._landings,
            "rows": {name: len(rows) for name, rows in self.landed.items()},
            "wrong": dict(self.wrong),
            "seconds": time.monotonic() - begun,
        }

    def check(self) -> None:
        """Count the rows of each table that are not there, or are there and must not be."""
        for name, rows in wanted(self.landed["sales"], self.landed["changes"]).items():
            kind, _, table = name.partition(" ")
            folder = self.folder / "into" / kind / table
            columns = COLUMNS[name]
            found = esault.read(folder, columns).to_pylist() if table_log(folder).files() else []
            has = Counter(tuple(row[column] for column in columns) for row in found)
            must = Counter(rows)
            self.wrong[name] += (must - has).total() + (has - must).total()


#: kind and name of a table -> the columns that are compared
COLUMNS = {
    "clean sales": ["shop", "pieces", "day"],
    "quarantine sales": ["reason"],
    "clean changes": ["customer", "city", "at", "op"],
    "tables sold": ["shop", "pieces", "day"],
    "quarantine sold": ["shop", "pieces", "day"],
    "tables by_shop": ["shop", "pieces", "most", "n"],
    "tables customers": ["customer", "city", "at"],
    "tables moves": ["customer", "city", "at", "__START_AT", "__END_AT"],
    "tables by_day": ["day", "pieces", "n"],
    "reports sales": ["count"],
    "reports changes": ["count"],
}


def wanted(sales: _Rows, changes: _Rows) -> dict[str, _Rows]:
    """The rows of all tables, by a plain loop over what has landed."""
    clean = [row for row in sales if row[0]]
    sold = [row for row in clean if row[1] > 0]
    by_shop: dict[str, list[int]] = defaultdict(list)
    by_day: dict[str, list[int]] = defaultdict(list)
    for shop, pieces, day in sold:
        by_shop[shop].append(pieces)
        by_day[day].append(pieces)
    now: dict[int, tuple[Any, ...]] = {}
    open_moves: dict[int, list[Any]] = {}
    moves: list[list[Any]] = []
    for customer, city, at, op in sorted(changes, key=lambda row: row[2]):
        if customer in open_moves:
            open_moves.pop(customer)[4] = at
        now.pop(customer, None)
        if op != "d":
            now[customer] = (customer, city, at)
            open_moves[customer] = [customer, city, at, at, None]
            moves.append(open_moves[customer])
    return {
        "clean sales": clean,
        "quarantine sales": [("not as expected: a shop",) for row in sales if not row[0]],
        "clean changes": changes,
        "tables sold": sold,
        "quarantine sold": [row for row in clean if row[1] <= 0],
        "tables by_shop": [(shop, sum(all_), max(all_), len(all_)) for shop, all_ in by_shop.items()],
        "tables customers": list(now.values()),
        "tables moves": [tuple(move) for move in moves],
        "tables by_day": [(day, sum(all_), len(all_)) for day, all_ in by_day.items()],
        "reports sales": [(len(clean),)],
        "reports changes": [(len(changes),)],
    }
