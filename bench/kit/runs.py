"""Runs of a bench that add up over days, machines and commits, in one file: what is proved by numbers is not proved in one go."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.kit.machine import facts
from esault.sinks.durable import replace_file

__all__ = ["Runs"]


class Runs:
    """The runs in FOLDER/result.json. `all`: a dict for each, the oldest first."""

    def __init__(self, folder: str, bench: str) -> None:
        self.folder, self._folder, self._bench = folder, Path(folder), bench
        self._file = self._folder / "result.json"
        self.all: list[dict[str, Any]] = []
        if self._file.exists():
            self.all = json.loads(self._file.read_text(encoding="utf-8"))["runs"]
        self._own: dict[str, Any] | None = None
        self._commit = str(facts()["commit"] or "no commit")

    @property
    def next_seed(self) -> int:
        """The seed behind all that are there."""
        return max((run["last_seed"] for run in self.all), default=0) + 1

    def check(self, seeds: range) -> None:
        """Refuse seeds that are counted already. Raises SystemExit."""
        for run in self.all:
            if run["first_seed"] < seeds.stop and seeds.start <= run["last_seed"]:
                raise SystemExit(
                    f"{self._file}: seeds {run['first_seed']:,} to {run['last_seed']:,} are counted there already; go on with "
                    f"--seed {self.next_seed}, or leave --out out"
                )

    def keep(
        self, first: int, last: int, counts: Mapping[str, int], failures: Mapping[str, str], about: Mapping[str, Any]
    ) -> None:
        """Note how far this run has come; a later call replaces what an earlier one said of it."""
        if self._own is None:
            self._own = {}
            self.all.append(self._own)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._own.update(
            {"commit": self._commit, "until": now, "first_seed": first, "last_seed": last, **about},
            counts=dict(sorted(counts.items())),
            failures=dict(failures),
        )

    def totals(self) -> Counter[str]:
        """The counts of all runs; of the last seed the highest."""
        totals: Counter[str] = Counter()
        for run in self.all:
            totals.update(run["counts"])
        if "last seed" in totals:
            totals["last seed"] = self.next_seed - 1
        return totals

    def lines(self) -> list[str]:
        """A line for each run, and its failures."""
        lines = []
        for run in self.all:
            lines.append(
                f"  {run['commit']}, until {run['until']}: seeds {run['first_seed']:,} to {run['last_seed']:,}, "
                f"{len(run['failures'])} failed"
            )
            lines += [f"    {seed}: {wrong[:300]}" for seed, wrong in sorted(run["failures"].items())]
        return lines

    def write(self, lines: list[str]) -> None:
        """Write result.json, a line for each run, and these lines into result.txt; either file is the old or the new one, whole."""
        self._folder.mkdir(parents=True, exist_ok=True)
        runs = ",\n".join(map(json.dumps, self.all))
        text = f'{{"bench": {json.dumps(self._bench)}, "runs": [\n{runs}\n]}}\n'
        for path, content in ((self._file, text), (self._folder / "result.txt", "\n".join(lines) + "\n")):
            replace_file(f"{path}", content.encode())
