"""A run's own metrics, landed as tables: `windows`, `changes` and `runs` in one folder, over all runs.

Written in the command's process, in small commits; a disk that refuses while the run goes on ends the writing, never
the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from json import dumps
from typing import Any, get_type_hints

from esault.control.report.timeline import IN_WINDOWS, Page, UnitRecord
from esault.counters import UnitCounts
from esault.errors import EsaultError, UsageError
from esault.messages.change_record import ChangeRecord
from esault.report import Report
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import RunInfo

__all__ = ["CHANGES", "RUNS", "WINDOWS", "MetricsTables"]

#: columns of the tables; the key is the unit's name, or the run's identity
WINDOWS: dict[str, Any] = {
    "unit": str,
    "topology": str,
    **{f.name: get_type_hints(UnitRecord)[f.name] for f in fields(UnitRecord) if f.name not in ("unit", "counted")},
    **{name: get_type_hints(UnitCounts)[name] for name in IN_WINDOWS},
}
CHANGES: dict[str, Any] = {
    "unit": str,
    "topology": str,
    "t": float,
    "kind": str,
    "before": int,
    "after": int,
    "reason": str,
    "policy": str,
    "moved_keys": int,
    "moved_bytes": int,
    "held_back_ms": float,
    "total_ms": float,
    "dropped": str,
}
RUNS: dict[str, Any] = {
    "run": str,
    "topology": str,
    "engine": str,
    "started": datetime,
    "seconds": float,
    "ended": str,
    "deaths": int,
    "replayed": int,
    "p50_ms": float,
    "p99_ms": float,
    "max_ms": float,
    "report": str,
}
#: seconds between two commits
EVERY = 5.0


def _columns(record: UnitRecord) -> list[Any]:
    """The row of the table `windows` behind its first two columns."""
    return [record.counted[name] if name in record.counted else getattr(record, name) for name in list(WINDOWS)[2:]]


class MetricsTables:
    """The tables of metrics in `folder`, as one run writes them."""

    def __init__(self, folder: str | os.PathLike[str], notice: Callable[[str], None]) -> None:
        self.folder = os.fspath(folder)
        self._notice = notice
        self._sinks = {
            name: SparkTable(os.path.join(self.folder, name), columns, "append")
            for name, columns in (("windows", WINDOWS), ("changes", CHANGES), ("runs", RUNS))
        }
        self._topology = ""
        self._run = ""
        self._epoch = 0
        self._due: float | None = None
        self._on = False

    def check(self) -> None:
        """Before anything starts. UsageError: they cannot be written."""
        for sink in self._sinks.values():
            try:
                sink.check()
            except EsaultError as error:
                raise UsageError(f"--land-metrics {self.folder}: {error}") from None

    def begin(self, run: str, topology: str) -> None:
        """The run begins. Raises SinkError."""
        self._run, self._topology = run, topology
        begun = []
        try:
            for name, sink in self._sinks.items():
                sink.begin(RunInfo(run, topology, name, lineage=run))
                begun.append(sink)
                sink.open(Context(name, run=run, lineage=run))
        except BaseException:
            for sink in begun:
                sink.end(False)
            raise
        self._on = True

    def write_page(self, page: Page) -> None:
        """One page."""
        windows = [(record.unit, (self._topology, *_columns(record))) for record in page.units]
        self._write("windows", windows, page.at)
        changes = [(c.unit, self._change(t, c)) for t, c in page.changes]
        self._write("changes", changes, page.at)
        self._due = page.at + EVERY if self._due is None else self._due
        if page.at >= self._due:
            self._due = page.at + EVERY
            self._commit()

    def end(self, report: Report | None) -> None:
        """The run is over; the report is None when there is none. A second call does nothing."""
        if not self._run:
            return
        if report is not None:
            started = datetime.fromisoformat(report.started.replace("Z", "+00:00"))
            e2e = report.end_to_end_ms
            row = (
                *(report.topology, report.engine, started, report.seconds, report.ended, report.deaths),
                *(report.roots.replayed, e2e.p50, e2e.p99, e2e.max, dumps(report.as_dict())),
            )
            self._write("runs", [(self._run, row)], started.timestamp())
        self._commit()
        for sink in self._sinks.values():
            sink.end(report is not None and report.failure is None)
            sink.close()
        self._run, self._on = "", False

    def _change(self, t: float, c: ChangeRecord) -> tuple[Any, ...]:
        return (
            *(self._topology, t, c.kind, c.before, c.after, c.reason, c.policy),
            *(c.moved_keys, c.moved_bytes, 1000 * c.held, 1000 * c.seconds, c.dropped),
        )

    def _write(self, table: str, rows: Sequence[tuple[str, tuple[Any, ...]]], at: float) -> None:
        if not self._on or not rows:
            return
        try:
            self._sinks[table].write_columns([row[0] for row in rows], [row[1] for row in rows], at, None)
        except (EsaultError, OSError) as error:
            self._failed(error)

    def _commit(self) -> None:
        self._epoch += 1
        try:
            for sink in self._sinks.values():
                if self._on:
                    sink.commit(self._epoch, sink.prepare(self._epoch))
        except (EsaultError, OSError) as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._on = False
        self._notice(f"the run's metrics are no longer landed: {error}")
