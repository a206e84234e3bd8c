"""The history of a pipeline's runs: one line of JSON for each, and the data-quality report that follows from all of them.

```
{"run": "0f…", "began": "2026-01-01T00:00:00Z", "seconds": 3.2, "ok": true, "error": null, "jobs": [
  {"job": "table:sold", "seconds": 1.1, "read": 100, "written": 97, "rows": 970, "version": 7, "why": null,
   "checked": 100, "quarantined": 3, "expectations": {"some pieces": ["quarantine", 3]}}]}
```

Runs that found nothing to do are not written down. While a run goes on, each job that is done has a line of its own, with
`"ok": null`, so that a run that is killed is in the sums, too. The line of the whole run, which has all jobs, follows at
its end and takes their place.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from typing import Any

from esault.sinks.landing.log import utc
from esault.spark.clean import Cleaned
from esault.spark.jobs import Watcher
from esault.spark.report import ReportTable
from esault.spark.tables.expectations import ExpectationFailed
from esault.spark.tables.step import Updated

__all__ = ["History", "history_of", "quality_of", "runs_in"]

_FILE = "history.jsonl"


class History(Watcher):
    """Writes down a run of the pipeline in folder `into`: each job when it is done, the whole when it is over."""

    def __init__(self, into: str, now: Callable[[], float] = time.time) -> None:
        self._into = into
        self._now = now
        self._jobs: list[dict[str, Any]] = []
        self.run = ""
        self._began = 0.0

    def begin(self) -> None:
        """A run begins."""
        self.run, self._began, self._jobs = str(uuid.uuid4()), self._now(), []

    def ended(self, job: str, outcome: Any | None, seconds: float, error: BaseException | None) -> None:
        """`job` is over."""
        if outcome is None and error is None:
            return
        line: dict[str, Any] = {"job": job, "seconds": round(seconds, 3)}
        if error is not None:
            line["error"] = f"{type(error).__name__}: {error}"
            if isinstance(error, ExpectationFailed):
                line |= {"checked": error.checked.rows, "why": None}
                line["expectations"] = {name: list(one) for name, one in error.expectations.items()}
        elif isinstance(outcome, Updated):
            names = ("read", "written", "rows", "version", "why", "checked", "quarantined")
            line |= {name: getattr(outcome, name) for name in names}
            line["expectations"] = {name: list(one) for name, one in outcome.expectations.items()}
        elif isinstance(outcome, Cleaned):
            line |= {"read": outcome.read, "written": outcome.kept, "why": outcome.why}
            line |= {"checked": outcome.read, "quarantined": outcome.quarantined, "repeats": outcome.repeats}
        self._jobs.append(line)
        if error is None:
            self._write(None, None, [line])

    def end(self, error: BaseException | None = None) -> None:
        """The run is over."""
        if self._jobs or error is not None:
            said = None if error is None else f"{type(error).__name__}: {error}"
            self._write(error is None, said, self._jobs)

    def _write(self, ok: bool | None, error: str | None, jobs: list[dict[str, Any]]) -> None:
        line = {"run": self.run, "began": utc(self._began), "seconds": round(self._now() - self._began, 3)}
        append_line(os.path.join(self._into, _FILE), {**line, "ok": ok, "error": error, "jobs": jobs})


def append_line(path: str, value: Any) -> None:
    """Add a line of JSON, which is there as a whole or not at all: it is one write, and what a full disk cut is left out."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = (json.dumps(value) + "\n").encode()
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                data = b"\n" + data
        file.write(data)


def runs_in(into: str) -> list[dict[str, Any]]:
    """The runs of the pipeline in folder `into`, the oldest first; `ok` is None of one that goes on, or was killed."""
    runs: dict[str, dict[str, Any]] = {}
    try:
        with open(os.path.join(into, _FILE), encoding="utf-8") as file:
            for line in file:
                try:
                    one = json.loads(line)
                except ValueError:
                    continue  # cut off
                begun = runs.get(one["run"])
                if begun is not None and one["ok"] is None:
                    begun["seconds"] = one["seconds"]
                    begun["jobs"] += one["jobs"]
                else:
                    runs[one["run"]] = one
    except FileNotFoundError:
        pass
    return list(runs.values())


def history_of(into: str, most: int = 20) -> ReportTable:
    """The last runs, the newest first."""
    rows = []
    for run in reversed(runs_in(into)[-most:]):
        jobs = run["jobs"]
        tables = ", ".join(one["job"].partition(":")[2] for one in jobs if one["job"].startswith("table:"))
        counts = [sum(one.get(name) or 0 for one in jobs) for name in ("read", "written", "quarantined")]
        ended = run["error"] or ("ok" if run["ok"] else "not yet, or killed")
        rows.append((run["began"], run["seconds"], *counts, tables, ended))
    heads = ("began", "seconds", "read", "written", "quarantined", "tables", "ended")
    return ReportTable("runs", heads, ("text", "number", "number", "number", "number", "text", "text"), tuple(rows))


def quality_of(into: str) -> ReportTable:
    """Of each expectation: the rows that it was asked of, and those that did not fulfil it, in all runs and in the last."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for run in runs_in(into):
        for job in run["jobs"]:
            for name, (action, failed) in job.get("expectations", {}).items():
                one = sums.setdefault((job["job"].partition(":")[2], name, action), [0, 0, 0, 0])
                if job["why"] is not None:
                    one[:2] = [0, 0]  # all was asked anew
                if "error" not in job:  # else none of the rows came into the table, and they are asked again
                    one[0] += job["checked"]
                    one[1] += failed
                one[2:] = [job["checked"], failed]
    rows = [
        (table, name, action, rows, failed, round(100 * (1 - failed / rows), 3) if rows else None, last, bad)
        for (table, name, action), (rows, failed, last, bad) in sums.items()
    ]
    heads = ("table", "expectation", "or", "rows", "failed", "% passed", "last run", "failed there")
    return ReportTable("data quality", heads, ("text", "text", "text", *("number",) * 5), tuple(rows))
