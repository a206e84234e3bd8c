"""What a run in one process says when it is interrupted."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.runtime.session.local_run import run_local
from esault.runtime.session.request import Quiet, Request
from esault.sources import Items


class Interrupts(Bolt):
    """Raises what Ctrl-C raises."""

    def process(self, key, value):
        raise KeyboardInterrupt


def topology() -> Topology:
    t = Topology("interrupted")
    t.spout("items", Items([("a", 1)])).bolt("interrupts", Interrupts, by_key())
    return t


class Told(Quiet):
    """Keeps notices."""

    def __init__(self):
        self.notices = []

    def notice(self, text):
        self.notices.append(text)


def test_an_interrupt_by_user_code_is_told_with_its_place():
    view = Told()
    assert run_local(Request(topology, view=view)).ended == "stopped"
    (told,) = [text for text in view.notices if text.startswith("stopped at once")]
    assert "raised in process" in told and "test_local_run.py" in told
