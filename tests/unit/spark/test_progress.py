"""What is said of Spark's tasks while a block lasts, of a session that is told what to answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from esault.spark import progress as module
from esault.spark.progress import progress

#: more than a busy machine makes a thread wait
PATIENCE = 60.0


class Said:
    """Lines, and a wait until there are some."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._came = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._came:
            self.lines.append(line)
            self._came.notify_all()

    def wait(self, lines: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.lines) >= lines, PATIENCE)


def session(answers: Iterator[Any]) -> Any:
    """A session whose stages have so many tasks (done, all) each time that it is asked; an error is raised."""
    stages: dict[int, Any] = {}

    def active() -> list[int]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        stages.clear()
        stages.update(
            enumerate(None if s is None else SimpleNamespace(numCompletedTasks=s[0], numTasks=s[1]) for s in answer)
        )
        return list(stages)

    tracker = SimpleNamespace(getActiveStageIds=active, getStageInfo=stages.get)
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_tasks_of_all_stages_that_run_are_added() -> None:
    said = Said()
    answers = iter([[], [(1, 4), (0, 2)], RuntimeError("the session is over"), [None, (3, 4)], [(4, 4)]])
    with progress(session(answers), "clean sales", said, every=0.01):
        said.wait(3)
    # where there are no tasks, or no answer, nothing is said for a while; none is asked for behind the end of the list
    assert [line.rpartition(",")[0] for line in said.lines] == [
        "  clean sales: 1 of 6 tasks",
        "  clean sales: 3 of 4 tasks",
        "  clean sales: 4 of 4 tasks",
    ]


def test_it_is_said_that_there_are_no_tasks_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STILL", 0.0)
    said = Said()
    with progress(session(iter([[], []])), "reports", said, every=0.01):
        said.wait(2)
    assert said.lines[0] == "  reports: between tasks, 0 s"


def test_nothing_is_said_behind_the_end_also_of_one_that_fails() -> None:
    said = Said()
    with pytest.raises(ZeroDivisionError), progress(session(iter([])), "reports", said, every=0.01):
        raise ZeroDivisionError
    count = len(said.lines)
    for thread in threading.enumerate():
        if "watch" in thread.name:  # where cores are busy it ends later than it is waited for
            thread.join(60)
            assert not thread.is_alive()
    assert len(said.lines) == count
