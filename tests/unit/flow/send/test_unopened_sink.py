"""A sink that keeps what `open` makes commits in a process that has not opened it, too."""

from __future__ import annotations

from typing import ClassVar

import pytest

from esault import Sink
from esault.flow.operators.user_error import ConnectorError
from esault.flow.send.recommit import UnopenedSink, commit_for_run, forget_staged
from esault.topology.context import Context
from esault.topology.plan import SinkPlan


class Connected(Sink):
    """As people write one: a connection that `open` makes."""

    said: ClassVar[list[object]] = []

    def __init__(self):
        self.said.clear()

    def open(self, context):
        self.said.append(("open", context.unit, context.run))
        self.rows = []

    def commit(self, epoch, handle):
        self.rows.append(handle)
        self.said.append((epoch, tuple(self.rows), self.context.lineage))

    def forget_staged(self, kept=()):
        self.said.append(("forget", len(self.rows)))

    def close(self):
        self.said.append("close")


CONTEXT = Context("", run="r", lineage="s")


def test_it_is_opened_once_and_closed_behind_the_last_commit():
    sink = Connected()
    commit_for_run("out", sink, [(2, "b"), (1, "a")], None, context=CONTEXT)
    assert sink.said == [("open", "out", "r"), (1, ("a",), "s"), (2, ("a", "b"), "s"), "close"]
    assert not hasattr(sink, "rows")  # that was a copy: the next time it is opened again
    commit_for_run("out", sink, [(3, "c")], None, context=CONTEXT)
    assert sink.said[-3:] == [("open", "out", "r"), (3, ("c",), "s"), "close"]


def test_other_hooks_of_the_driver_are_served_so_too():
    sink = Connected()
    forget_staged(SinkPlan("out", sink), (), None, back=True)
    assert sink.said == [("open", "out", "local"), ("forget", 0), "close"]


def test_a_folder_that_open_makes_is_there_for_it(tmp_path):
    class Folder(Sink):
        def open(self, context):
            (tmp_path / "out").mkdir(exist_ok=True)

        def forget_staged(self, kept):
            for each in (tmp_path / "out").iterdir():
                each.unlink()

    forget_staged(SinkPlan("out", Folder()), (), None, back=False)
    assert (tmp_path / "out").is_dir()


def test_a_file_that_open_does_not_make_either_is_an_error(tmp_path):
    class Lost(Connected):
        def commit(self, epoch, handle):
            (tmp_path / handle).rename(tmp_path / "shown")

    with pytest.raises(ConnectorError, match="sink 'out', commit: FileNotFoundError"):
        commit_for_run("out", Lost(), [(1, "a")], None)


def test_one_that_needs_nothing_of_open_is_not_opened():
    class Plain(Connected):
        def commit(self, epoch, handle):
            self.said.append((epoch, handle))

    sink = Plain()
    commit_for_run("out", sink, [(1, "a")], None)
    assert sink.said == [(1, "a")]


def test_what_it_misses_when_it_is_open_or_of_another_object_is_an_error_as_before():
    class Wrong(Connected):
        def commit(self, epoch, handle):
            self.nowhere.append(handle)  # type: ignore[attr-defined]

    class OfAnother(Connected):
        def commit(self, epoch, handle):
            handle.nowhere()

    class NotOpened(Sink):
        def commit(self, epoch, handle):
            self.nowhere.append(handle)  # type: ignore[attr-defined]

    for cls, opens in ((Wrong, 1), (OfAnother, 0), (NotOpened, 0)):
        Connected.said.clear()
        with pytest.raises(ConnectorError, match="sink 'out', commit: AttributeError: .*nowhere"):
            commit_for_run("out", cls(), [(1, "a")], None)
        assert sum(type(each) is tuple for each in Connected.said) == opens


def test_where_it_cannot_be_opened_the_error_names_that():
    class Away(Connected):
        def open(self, context):
            raise OSError(111, "Connection refused")

    with UnopenedSink("out", Away(), None) as hooks, pytest.raises(ConnectorError, match="sink 'out', open: .*refused"):
        hooks.call("commit", 1, "a")
