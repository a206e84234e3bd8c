from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from esault.flow.send.sink_writers import SinkWriters


class Writer(SimpleNamespace):
    """A writer of which only what is asked is there; it notes what is done to it."""

    def __init__(self, name: str, **fields: Any) -> None:
        super().__init__(name=name, done=[], **fields)

    def commit(self):
        self.done.append("commit")

    def due_at(self, idle):
        return self.due if idle else self.due_busy

    def prepare(self, number, take):
        self.done.append(number)
        take(f"handle of {self.name}")

    def complete(self, number, handle, done):
        self.done.append((number, handle))
        done(True)

    def close(self):
        if self.wrong:
            raise OSError("no")


def writers(*each, exactly=True):
    made = SinkWriters(exactly)
    made.extend(each)
    return made


def test_those_that_are_due_commit_and_at_the_end_all_that_have_something():
    a, b, none = Writer("a", due=1.0, due_busy=5.0), Writer("b", due=3.0, due_busy=3.0), Writer("c", due=None)
    sinks = writers(a, b, none)
    sinks.commit(2.0, False, True)
    assert (a.done, b.done, none.done) == (["commit"], [], [])
    sinks.commit(2.0, True, True)
    assert (a.done, b.done, none.done) == (["commit", "commit"], ["commit"], [])
    assert list(sinks.due_at(True)) == [1.0, 3.0]


@pytest.mark.parametrize("exactly", [True, False])
def test_a_checkpoint_has_handles_of_all_where_it_is_what_commits(exactly):
    sinks, said = writers(Writer("a"), Writer("b"), exactly=exactly), []
    handles = sinks.prepare(7, lambda: said.append(1))
    assert handles == ({"a": "handle of a", "b": "handle of b"} if exactly else {})
    assert len(said) == len(handles)


def test_a_handle_goes_when_its_sink_has_committed_it():
    a, b = Writer("a"), Writer("b")
    handles = {"b": "h"}
    writers(a, b).complete(7, handles)
    assert (a.done, b.done, handles) == ([], [(7, "h")], {})


def test_the_slowest_says_how_many_rows_come_next():
    quick, slow, slower = (Writer(str(n), most_rows=lambda count, n=n: n) for n in (0, 90, 20))
    assert writers(quick).most_rows(512) == 0
    assert writers(quick, slow, slower).most_rows(512) == 20


def test_all_are_closed_and_what_goes_wrong_is_told():
    assert writers(Writer("a", wrong=True), Writer("b", wrong=False), Writer("c", wrong=True)).close() == [
        "sink 'a' cannot be closed: no",
        "sink 'c' cannot be closed: no",
    ]


def test_those_with_a_hook_under_way_are_named():
    a, b = (Writer(name, hooks=SimpleNamespace(open=name == "b")) for name in "ab")
    assert writers(a, b).waiting == ("b",)
