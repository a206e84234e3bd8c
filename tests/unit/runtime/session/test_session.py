"""What the command does while a run is on, without one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.errors import TopologyFailed
from esault.runtime.messages import DrainRun, RunEnded, StopRun
from esault.runtime.session.session import Session


class Handle:
    """An actor system: what it says at each turn, and does meanwhile, is given."""

    def __init__(self, *turns):
        self.turns, self.told = list(turns), []

    def listen(self, timeout):
        if not self.turns:
            return RunEnded("the end")
        turn = self.turns.pop(0)
        return turn() if callable(turn) else turn

    def tell(self, address, message):
        self.told.append(message)

    def alive(self):
        return True


def watched(monkeypatch):
    """A session that watches, its notices, and what a signal does to it."""
    from esault.runtime.session import session

    monkeypatch.setattr(session, "Snapshot", SimpleNamespace)
    watching = object.__new__(Session)
    notices = []
    watching._view = SimpleNamespace(notice=notices.append, update=lambda snapshot: None)
    watching._control_server = watching._metrics = watching._run_dir = None
    watching._seconds, watching._signals, watching._idle_watch = 1e-9, 0, None

    def signal():
        watching._signals += 1

    return watching, notices, signal


def test_a_signal_after_the_time_is_over_is_answered_and_a_second_one_stops_at_once(monkeypatch):
    watching, notices, signal = watched(monkeypatch)
    handle = Handle(SimpleNamespace(phase="running"), None, signal, None, signal)
    with pytest.raises(TopologyFailed, match="the end"):
        watching._watch(handle, None)
    assert handle.told == [DrainRun(), DrainRun(), StopRun()]
    assert "again to stop at once" in notices[0]


def test_a_third_signal_ends_the_command_though_the_driver_says_nothing(monkeypatch):
    watching, _, signal = watched(monkeypatch)
    handle = Handle(SimpleNamespace(phase="running"), signal, signal, signal, *[None] * 1000)
    with pytest.raises(TopologyFailed, match="asked a third time"):
        watching._watch(handle, None)
    assert handle.told[-1] == StopRun() and len(handle.turns) > 990
