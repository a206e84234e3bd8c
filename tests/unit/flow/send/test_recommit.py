"""The order in which what a checkpoint holds is committed again."""

from __future__ import annotations

from esault import Sink
from esault.flow.send.recommit import commit_for_run


class Noted(Sink):
    def __init__(self) -> None:
        self.noted: list[tuple[int, str]] = []

    def commit(self, epoch, handle):
        self.noted.append((epoch, handle))


class NotedAtOnce(Noted):
    def commit_all(self, epoch, handles):
        self.noted.append((epoch, "".join(handles)))


#: as they stand in a checkpoint: by sub-unit, each with what it had not been told of yet
HANDLES = [(1, "a"), (2, "b"), (1, "c"), (2, "d")]


def test_what_an_older_checkpoint_holds_is_committed_before_what_a_newer_one_does():
    sink = Noted()
    commit_for_run("out", sink, HANDLES, None)
    assert sink.noted == [(1, "a"), (1, "c"), (2, "b"), (2, "d")]
    sink = NotedAtOnce()
    commit_for_run("out", sink, HANDLES, None)
    assert sink.noted == [(1, "ac"), (2, "bd")]
