from __future__ import annotations

import functools

from esault.topology.bolt import Bolt
from esault.topology.examine import examine_bolt_class
from esault.topology.reduce import Reduce


class CompletedCheckpoint(Reduce):
    """As an engine would derive it: emits are kept."""

    def __init__(self, function, initial):
        super().__init__(function, initial)
        self.emitted = []

    def emit(self, key, value, stream=None):
        self.emitted.append((key, value))


def test_each_new_total_is_emitted():
    bolt = CompletedCheckpoint(lambda total, value: total + value, 10)
    bolt.process("a", 1)
    bolt.process("a", 2)
    assert bolt.emitted == [("a", 11), ("a", 13)]
    assert bolt.total == 13


def test_objects_do_not_share_a_mutable_initial():
    initial = {"n": [0]}
    factory = functools.partial(Reduce, lambda total, value: total, initial)
    one, other = factory(), factory()
    one.total["n"].append(1)
    assert other.total == {"n": [0]}
    assert initial == {"n": [0]}


def test_the_total_alone_is_what_moves():
    factory = functools.partial(Reduce, lambda total, value: total + value, 0)
    old, new = factory(), factory()
    old.total = 5
    new.__setstate__(old.__getstate__())
    assert old.__getstate__() == {"total": 5}
    assert new.total == 5


def test_it_is_an_ordinary_bolt():
    assert issubclass(Reduce, Bolt)
    assert examine_bolt_class(Reduce, "count") is False
