"""How a run on Spark is watched to its end, with a query that the test plays."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from esault.errors import SinkError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.spark.engine import query, run
from esault.spark.engine.journal import Journal, Record
from esault.spark.engine.kept import Kept
from esault.spark.engine.run import SparkRun, _Life
from esault.topology.locate import locate

WORDS = """
from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items

def topology():
    t = Topology("words")
    t.spout("words", Items([("a", 1)])).sink("out", JsonLines("out.jsonl"))
    return t
"""
QUIET = SimpleNamespace(update=lambda snapshot: None, notice=lambda text: None)


def test_java_collects_in_one_thread_where_it_has_few_cores_and_nobody_said_how() -> None:
    def options(url: str, cores: int, **environ: str) -> str:
        return query.conf_for(url, cores, environ)["spark.driver.extraJavaOptions"]

    assert options("local[*]", 2).endswith(" -XX:+UseSerialGC")
    said = [{"JDK_JAVA_OPTIONS": "-XX:+UseG1GC"}, {"SPARK_SUBMIT_OPTS": "-Xmx1g -XX:+UseZGC"}]
    for url, cores, environ in [
        ("local[*]", 32, {}),
        ("spark://a:7077", 2, {}),
        *(("local[2]", 2, each) for each in said),
    ]:
        assert "GC" not in options(url, cores, **environ)
    assert "GC" in options("local[2]", 2, JDK_JAVA_OPTIONS="-Xmx1g")


class Query:
    """Spark's, as far as it is asked for."""

    isActive = True  # noqa: N815 - Spark's name

    def __init__(self, process_all: Callable[[], None]) -> None:
        self.processAllAvailable = process_all

    def exception(self) -> Any:
        return None


class Gateway:
    """A way to Spark's Java, which answers until its process has ended."""

    def __init__(self) -> None:
        self.proc = subprocess.Popen(["sleep", "60"])
        self.answers = True

    @property
    def jvm(self) -> Any:
        if not self.answers:
            raise ConnectionRefusedError
        return SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of a run with checkpoints, all of whose tuples were read after a first signal."""
    monkeypatch.setattr(run, "LOOK", 0.001)
    made = _Life.__new__(_Life)
    made._asked = SimpleNamespace(settings=SimpleNamespace(delivery=Delivery.EXACTLY_ONCE), seconds=None)  # type: ignore[assignment]
    made._view = QUIET
    made._snapshot = lambda phase, draining: None  # type: ignore[assignment,method-assign,return-value]
    made._epochs = SimpleNamespace(ended=threading.Event(), failure=None)  # type: ignore[assignment]
    over = threading.Event()
    drain = lambda pause: over.set()
    made._reading = SimpleNamespace(failure=None, over=over, ending=False, drain=drain)  # type: ignore[assignment]
    made._spark = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=Gateway()))
    made._kept = SimpleNamespace(exactly=True)  # type: ignore[assignment]
    made._started, made._ended, made._failure, made._signals = 0.0, "failed", None, 1
    yield made
    made._spark.sparkContext._gateway.proc.kill()
    made._spark.sparkContext._gateway.proc.wait()


@pytest.mark.parametrize(
    ("exactly", "remedy"), [(True, "Nothing is lost: go on with --resume"), (False, "Begin the run again")]
)
def test_a_java_that_dies_is_what_the_run_failed_of(life: Any, exactly: bool, remedy: str) -> None:
    life._kept.exactly = exactly
    gateway = life._spark.sparkContext._gateway
    java = gateway.proc

    class Gone(Query):
        @property
        def isActive(self) -> bool:  # type: ignore[override]
            gateway.answers = False
            java.kill()  # what it was connected to ends before it has
            raise ConnectionRefusedError(111, "Connection refused")

    life._watch(Gone(lambda: None))
    assert life._ended == "failed"
    assert life._failure.startswith(f"Spark's Java (process {java.pid}) was killed (SIGKILL)")
    assert remedy in life._failure


def test_it_pauses_when_all_that_was_read_is_processed(life: Any) -> None:
    life._watch(Query(lambda: None))
    assert (life._ended, life._failure) == ("paused", None)


def test_a_second_signal_is_heard_while_the_last_batch_takes_its_time(life: Any) -> None:
    again, never = threading.Event(), threading.Event()

    def process_all() -> None:
        life._signals = 2  # as the handler does
        again.set()
        never.wait(60)

    life._watch(Query(process_all))
    never.set()
    assert again.is_set() and life._ended == "stopped"


def test_a_query_that_fails_while_the_run_pauses_is_a_failure_with_its_cause(life: Any) -> None:
    def process_all() -> None:
        raise RuntimeError("the log of offsets cannot be written: no space left on device")

    life._watch(Query(process_all))
    assert life._ended == "failed"
    assert life._failure == "Spark: the log of offsets cannot be written: no space left on device"


class TestSinksOfARunThatGoesOn:
    """`out.jsonl` is there, and refuses any run that begins."""

    @pytest.fixture
    def go_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Has the run go on whose newest epoch was `over`, or not; returns whether it began to work."""
        monkeypatch.chdir(tmp_path)
        Path("words.py").write_text(WORDS)
        Path("out.jsonl").write_text("{}\n")
        located = locate("words.py:topology")
        lives: list[Any] = []
        self.said: list[str] = []
        view = SimpleNamespace(update=lambda snapshot: None, notice=self.said.append)

        def life(asked: Any, spark: Any, folder: Path, kept: Kept) -> Any:
            lives.append(kept)
            return SimpleNamespace(run=lambda: None)

        monkeypatch.setattr(run, "_Life", life)
        monkeypatch.setattr(SparkRun, "_session", lambda self: contextlib.nullcontext())
        monkeypatch.setattr(query, "settled", lambda *_: contextlib.nullcontext())
        monkeypatch.setattr(query, "on_disk", lambda *_: {})

        def go_on(over: bool | None) -> bool:
            state = tmp_path / "state"
            kept = Kept(state, state / "spark", True, None)
            kept.lay_out(located.build({}).plan(), {}, 2)
            kept.begin("r")
            if over is not None:
                Journal(state / "spark" / "epochs").write(0, Record((), (), {}, over))
            settings = Settings(delivery="eo")
            SparkRun(
                located=located,
                params={},
                run_id="r2",
                settings=settings,
                parallelism={},
                policies={},
                slots=16,
                seconds=None,
                view=view,
                state=state,
                resume=True,
            ).run()
            return len(lives) == 1

        return go_on

    def test_they_are_not_asked_when_all_was_committed(self, go_on: Any) -> None:
        assert go_on(True)
        assert "going on from checkpoint 1 in " in self.said[-1]

    @pytest.mark.parametrize("over", [False, None])
    def test_they_are_asked_when_there_is_more_to_come(self, go_on: Any, over: bool | None) -> None:
        with pytest.raises(SinkError, match=r"out\.jsonl: exists already"):
            go_on(over)
        number = "its first batch" if over is None else "checkpoint 1"
        assert f"going on from {number} in " in self.said[-1]
