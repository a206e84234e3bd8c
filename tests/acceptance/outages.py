"""Servers that are away for 30 s while a run reads from them and writes to them: said, waited for, nothing lost or doubled."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

#: rows that go through, and seconds for which the server is away
ROWS, SECONDS = 2000, 30
OPTIONS = ("--checkpoint", "0.5", "--policy", "none")
#: how a wait is said, and its end
WAITS = ("waits for", "waiting until", "trying again until")
GOES_ON = ("goes on", "answers again", "taken again")


@dataclass
class Flow:
    """What a run through a server needs: its parameters, how the server goes and comes back, and the numbers that stand there then."""

    params: dict[str, Any]
    away: Callable[[], object]
    back: Callable[[], object]
    there: Callable[[], list[int]]
    #: how many say that they wait: source and sink at least
    said: int = 2
    #: rows may come again behind the outage
    again: bool = False
    #: the run ends by itself
    ends: bool = True
    #: what comes before, given the command; with more parameters, and `resume`
    before: Callable[[Any], dict[str, Any]] = field(default=lambda command: {})


@contextlib.contextmanager
def standing_still(pid: int) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """What has a process stand still, and what has it go on: connections stay, and nothing answers."""
    process = psutil.Process(pid)
    try:
        yield process.suspend, process.resume
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


def outlast(command: Any, folder: Path, place: str, served: AbstractContextManager[Flow]) -> None:
    """Have the topology at `place` outlast the outage. It lands its rows in the file out.jsonl of this folder, too."""

    def landed() -> list[int]:
        path = folder / "out.jsonl"
        return [json.loads(line)["value"]["n"] for line in path.read_text().splitlines()] if path.exists() else []

    with contextlib.ExitStack() as stack:
        try:
            flow = stack.enter_context(served)
        except Exception as error:
            if type(error).__name__ == "NotToBeHadError":
                pytest.skip(str(error))
            raise
        stack.callback(command.end)
        asked = flow.before(command)
        resume = ("--resume",) if asked.pop("resume", False) else ()
        command.start(place, *OPTIONS, *resume, **flow.params, **asked)
        command.until(lambda: len(landed()) > 200)
        flow.away()
        before = landed()
        time.sleep(SECONDS)
        assert command.status().get("phase") == "running"
        assert len(landed()) < ROWS, f"{len(before)} had landed when it went away"
        flow.back()
        if flow.ends:
            code, _, err = command.wait()
        else:
            command.until(lambda: len(set(landed())) == ROWS)
            code, _, err = command.stop()
        assert code == 0, err
        assert sum(err.count(each) for each in WAITS) >= flow.said, err
        assert sum(err.count(each) for each in GOES_ON) >= flow.said, err
        assert set(landed()) == set(flow.there()) == set(range(ROWS))
        if not flow.again:
            assert len(landed()) == len(flow.there()) == ROWS
