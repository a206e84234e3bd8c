"""Rows that have landed, about 1 GB of Parquet, made into a clean table and a report: by `esault analyze`, and by plain PySpark."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import esault
from bench.kit.result import Bar
from esault.sinks.landing import table_log
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import RunInfo

__all__ = ["RATIO", "Speed"]

ROOT = Path(__file__).parents[2]
#: what esault may take at most, of plain PySpark's time
RATIO = 1.3
#: rows that are about 1 GB, and how many a part has
ROWS, EACH = 58_000_000, 500_000
MEMORY = "4g"
COLUMNS = {"user": int, "item": str, "price": float}


class Speed:
    """See the module. `scale`: of the rows."""

    def __init__(self, folder: Path, scale: float) -> None:
        self._folder, self._rows = folder, max(EACH, int(ROWS * scale))

    def _land(self) -> int:
        """Land the rows, one in a thousand a second time, over three days; the bytes of all parts."""
        random, path = np.random.default_rng(17), self._folder / "landed"
        driver = SparkTable(path, COLUMNS, "replace")
        driver.check()
        driver.begin(RunInfo("r1", "speed", "sales"))
        sink = SparkTable(path, COLUMNS, "replace")
        sink.open(Context("u", run="r1"))
        for epoch, first in enumerate(range(0, self._rows, EACH)):
            n = min(EACH, self._rows - first)
            values = pa.RecordBatch.from_arrays(
                [
                    pa.array(np.char.add("item-", random.integers(0, 1_000_000_000, n).astype(str))),
                    pa.array(np.where(random.random(n) < 0.01, -1.0, random.random(n) * 100)),
                ],
                ["item", "price"],
            )
            ids = [f"u:{first + i}" for i in range(n)]
            ids[-(n // 1000) :] = ids[: n // 1000]
            day = 1_767_225_600.0 + 86400 * (3 * first // self._rows)
            sink.write_columns(pa.array(random.integers(0, 100_000, n)), values, day, ids)
            sink.commit(epoch, sink.prepare(epoch))
        driver.repeated = True
        driver.end(True)
        return sum(part.bytes for part in table_log(path).files())

    def _timed(self, name: str, *command: str) -> dict[str, float]:
        """Seconds of a command, processor seconds of all its processes, and the load behind it."""
        log = self._folder / f"{name}.txt"
        begun = time.monotonic()
        with log.open("wb") as out:
            done = subprocess.run(
                [sys.executable, "-m", "bench.real.launcher", sys.executable, *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=out,
                stderr=out,
                check=False,
            )
        seconds = time.monotonic() - begun
        text = log.read_text(errors="replace")
        weighed = {"code": 1} if done.returncode else json.loads(text.splitlines()[-1])
        if weighed["code"]:
            raise SystemExit(f"{name} failed: {text[-3000:]}")
        return {"seconds": seconds, "processor": weighed["waited_seconds"], "load": os.getloadavg()[0]}

    def _esault(self) -> dict[str, float]:
        shutil.rmtree(self._folder / "into", ignore_errors=True)
        topology = Path(__file__).with_name("sales.py")
        options = [
            "--set",
            f"folder={self._folder}",
            "--into",
            str(self._folder / "into"),
            f"--conf=spark.driver.memory={MEMORY}",
        ]
        return self._timed("esault", "-m", "esault", "analyze", f"{topology}:topology", *options)

    def _plain(self) -> dict[str, float]:
        shutil.rmtree(self._folder / "plain", ignore_errors=True)
        program = str(Path(__file__).with_name("plain.py"))
        return self._timed("plain", program, str(self._folder / "landed"), str(self._folder / "plain"), MEMORY)

    def _check(self) -> None:
        """Both have made the same rows. Raises SystemExit."""
        import pyarrow.dataset as ds

        into, plain = self._folder / "into", self._folder / "plain"
        for name, ours, theirs in (
            ("clean", table_log(into / "clean" / "sales").files(), plain / "clean"),
            ("quarantine", table_log(into / "quarantine" / "sales").files(), plain / "quarantine"),
        ):
            n, wanted = sum(part.rows for part in ours), ds.dataset(theirs, partitioning="hive").count_rows()
            if n != wanted:
                raise SystemExit(f"{name}: {n:,} rows by esault, {wanted:,} by plain PySpark")
        both = [
            sorted((row["item"], row["n"]) for row in table.to_pylist())
            for table in (esault.read(into / "reports" / "best"), ds.dataset(plain / "best").to_table())
        ]
        if both[0] != both[1]:
            raise SystemExit(f"best: {both[0][:3]} by esault, {both[1][:3]} by plain PySpark")

    def run(self, runs: int) -> dict[str, Any]:
        """So many runs of each, in turns. Raises SystemExit where one fails, or the rows differ."""
        size = self._land()
        found: dict[str, list[dict[str, float]]] = {"esault": [], "plain PySpark": []}
        for number in range(runs):
            for name, run in (("esault", self._esault), ("plain PySpark", self._plain))[
                :: 1 if number % 2 == 0 else -1
            ]:
                found[name].append(run())
                print(f"  {name}: {found[name][-1]}", flush=True)
            self._check()
        ours, theirs = (statistics.median(run["seconds"] for run in each) for each in found.values())
        return {
            "bytes": size,
            "rows": self._rows,
            "runs": found,
            "ratio": ours / theirs,
        }

    @staticmethod
    def lines(found: dict[str, Any]) -> list[str]:
        """Return what people read."""
        lines = [
            f"{found['rows']:,} rows landed, {found['bytes'] / 1e9:.2f} GB: a clean table by day, each row once; a quarantine; a report"
        ]
        for name, runs in found["runs"].items():
            seconds = sorted(run["seconds"] for run in runs)
            load = max(run["load"] for run in runs)
            took = [run["processor"] for run in runs if "processor" in run]  # older results do not say
            processor = f"{statistics.median(took):.0f} processor seconds, " if took else ""
            lines.append(
                f"  {name:14} median {statistics.median(seconds):6.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f}), "
                f"{processor}load up to {load:.0f}"
            )
        lines.append(f"  ratio {found['ratio']:.2f}; bar {RATIO}")
        return lines

    @staticmethod
    def bars(found: dict[str, Any]) -> list[Bar]:
        """Return what is drawn."""
        made = []
        for name, runs in found["runs"].items():
            seconds = sorted(run["seconds"] for run in runs)
            kind = "esault" if name == "esault" else "peer"
            made.append(Bar(name, statistics.median(seconds), seconds[0], seconds[-1], kind))
        return made
