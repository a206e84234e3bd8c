"""How a run on Spark is watched to its end, with a query that the test plays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from esault.messages.delivery import Delivery
from esault.spark.engine import run
from esault.spark.engine.run import _Life


class Query:
    """Spark's, as far as it is asked for."""

    isActive = True  # noqa: N815 - Spark's name

    def __init__(self, process_all: Callable[[], None]) -> None:
        self.processAllAvailable = process_all

    def exception(self) -> Any:
        return None


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of a run with checkpoints, all of whose tuples were read after a first signal."""
    monkeypatch.setattr(run, "LOOK", 0.001)
    made = _Life.__new__(_Life)
    made._asked = SimpleNamespace(settings=SimpleNamespace(delivery=Delivery.EXACTLY_ONCE), seconds=None)  # type: ignore[assignment]
    made._view = SimpleNamespace(update=lambda snapshot: None, notice=lambda text: None)
    made._snapshot = lambda phase, draining: None  # type: ignore[assignment,method-assign,return-value]
    made._epochs = SimpleNamespace(ended=threading.Event(), failure=None)  # type: ignore[assignment]
    over = threading.Event()
    drain = lambda pause: over.set()
    made._reading = SimpleNamespace(failure=None, over=over, ending=False, drain=drain)  # type: ignore[assignment]
    made._started, made._ended, made._failure, made._signals = 0.0, "failed", None, 1
    return made


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
