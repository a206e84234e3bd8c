"""Plans that forked processes inherit, and those that each process must build itself."""

from __future__ import annotations

import abc
import functools
import socket
import sqlite3
import threading

import pytest

from esault import Bolt, Topology, by_key
from esault.sinks import Collect
from esault.sources import Items
from esault.topology import inherited_plan
from esault.topology.inherited_plan import can_be_inherited, leave_plan, take_plan
from esault.topology.located import Located


class Echo(Bolt):
    def __init__(self, held=None):
        self.held = held

    def process(self, key, value):
        self.emit(key, value)


def plan(factory=Echo, rows=((1, 2),), step=None):
    t = Topology("inherited")
    stream = t.spout("rows", Items(list(rows)))
    if step is not None:
        stream = stream.map(step)
    stream.bolt("echo", factory, grouping=by_key()).sink("out", Collect())
    return t.plan()


def local_class(held):
    class Local(Echo):
        def __init__(self):
            super().__init__(held)  # its method holds the class, and the class its method

    return Local


def attribute_of_class(attribute):
    class Base(Echo):
        __slots__ = ()
        kept = attribute

        @staticmethod
        def make():
            return Local()

        @property
        def own(self):
            return self.kept

    class Local(Base, abc.ABC):
        pass

    return Local


@pytest.mark.parametrize(
    "held", [1, "text", [1, {"a": {2}}], len, threading, Echo, lambda: 1], ids=lambda held: type(held).__name__
)
def test_what_each_process_can_have_a_copy_of(held):
    assert can_be_inherited(plan(lambda: Echo(held)))
    assert can_be_inherited(plan(functools.partial(Echo, held)))
    assert can_be_inherited(plan(local_class(held)))
    attribute = tuple(held) if isinstance(held, list) else held  # a list there is refused
    assert can_be_inherited(plan(attribute_of_class(attribute)))
    assert can_be_inherited(plan(step=lambda value: (held, value)))


@pytest.mark.parametrize(
    "make", [threading.Lock, lambda: sqlite3.connect(":memory:"), socket.socket, lambda: (i for i in "abc")]
)
def test_what_processes_must_not_share(make):
    held = make()
    try:
        assert not can_be_inherited(plan(lambda: Echo(held)))
        assert not can_be_inherited(plan(lambda inside=[held]: Echo(inside)))
        assert not can_be_inherited(plan(functools.partial(Echo, held)))
        assert not can_be_inherited(plan(local_class(held)))
        assert not can_be_inherited(plan(attribute_of_class(held)))
        assert not can_be_inherited(plan(step=lambda value: (held, value)))
        assert not can_be_inherited(plan(step=functools.partial(lambda held, value: value, held)))
    finally:
        if hasattr(held, "close"):
            held.close()


@pytest.fixture
def located(tmp_path):
    (tmp_path / "counted.py").write_text(
        "from esault import Topology\n"
        "from esault.sinks import Collect\n"
        "from esault.sources import Items\n"
        "calls = []\n"
        "def topology(name='a'):\n"
        "    calls.append(name)\n"
        "    t = Topology(name)\n"
        "    t.spout('rows', Items([(1, 2)])).sink('out', Collect())\n"
        "    return t\n"
    )
    yield Located("topology", str(tmp_path), str(tmp_path), path=str(tmp_path / "counted.py"))
    inherited_plan._left = None


def calls(located):
    return located.load_module().calls


def test_a_plan_is_taken_once(located):
    left = located.build({"name": "b"}).plan()
    leave_plan(located, {"name": "b"}, left)
    assert take_plan(located, {"name": "b"}) is left
    assert calls(located) == ["b"]
    again = take_plan(located, {"name": "b"})
    assert again is not left
    assert again.name == "b"
    assert calls(located) == ["b", "b"]


def test_a_plan_of_other_parameters_is_not_taken(located):
    leave_plan(located, {"name": "b"}, located.build({"name": "b"}).plan())
    assert take_plan(located, {"name": "c"}).name == "c"


def test_a_plan_that_cannot_be_inherited_is_not_left(located):
    held = threading.Lock()
    leave_plan(located, {}, plan(lambda: Echo(held)))
    assert take_plan(located, {}).name == "a"
