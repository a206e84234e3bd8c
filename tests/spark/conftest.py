"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import held
import pytest
import quick_spark
import spark_python

from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import RunInfo

ROOT = str(Path(__file__).parents[2])
#: stacks are those of the Spark engine, whose plans are deep
QUICK = {
    **quick_spark.SETTINGS,
    "spark.driver.extraJavaOptions": f"{quick_spark.JAVA} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Xss8m",
}


@pytest.fixture
def young(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a command whose JVMs live for seconds, with Pythons as users have them."""
    found = {**quick_spark.environment(tmp_path_factory.mktemp("conf")), "PYTHONPATH": ROOT}
    found.pop("PYSPARK_PYTHON", None)  # of the session that tests here share
    return found


@contextmanager
def running() -> Iterator[Any]:
    from esault.spark import register, session

    with spark_python.running() as python, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", python)
        with session("local[2]", conf=QUICK) as started:
            register(started)
            yield started


@pytest.fixture(scope="module")
def spark() -> Any:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
    return held.held(running)


class Landed:
    """A table that is being written: one driver, sub-units as they are asked for."""

    def __init__(self, path: Path, run: str = "r1", mode: str = "append") -> None:
        self.path, self.run = path, run
        self.driver = SparkTable(path, {"word": str, "total": int}, mode)
        self.driver.check()
        self.driver.begin(RunInfo(run, "topology", "table"))
        self.sinks: dict[int, SparkTable] = {}
        self.epoch = 0

    def prepare(
        self, totals: Sequence[int], ids: Sequence[str] | None = None, sub_unit: int = 0, time: float = 1.0
    ) -> tuple[SparkTable, int, Any]:
        """Rows that are durable and not visible."""
        if sub_unit not in self.sinks:
            sink = self.sinks[sub_unit] = SparkTable(self.path, {"word": str, "total": int}, "append")
            sink.open(Context("table", sub_unit=sub_unit, run=self.run))
        sink = self.sinks[sub_unit]
        self.epoch += 1
        sink.write_columns([f"w{total % 5}" for total in totals], list(totals), time, ids)
        return sink, self.epoch, sink.prepare(self.epoch)

    def land(
        self, totals: Sequence[int], ids: Sequence[str] | None = None, sub_unit: int = 0, time: float = 1.0
    ) -> None:
        """Rows that are visible."""
        sink, epoch, handle = self.prepare(totals, ids, sub_unit, time)
        sink.commit(epoch, handle)

    def end(self, repeated: bool = True) -> None:
        self.driver.repeated = repeated
        self.driver.end(True)


@pytest.fixture
def landed(tmp_path: Path) -> Callable[..., Landed]:
    """Make a table in a folder whose name holds what Spark might take for a pattern."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'esault[parquet]'")

    def make(name: str = "o[1] {a,b}*%20ü", **arguments: Any) -> Landed:
        return Landed(tmp_path / name, **arguments)

    return make
