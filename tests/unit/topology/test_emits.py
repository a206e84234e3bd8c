"""What a bolt emits by: the other kind's way is refused, with what to write instead."""

from __future__ import annotations

import pytest

from esault import BatchBolt, Bolt
from esault.errors import TopologyError
from esault.topology.examine import check_emits


class Plain(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, keys, values):
        self.emit_batch([(key, None) for key in keys])


class WrongBatch(Bolt):
    def process(self, key, value):
        self.emit_batch([(key, value)])  # type: ignore[attr-defined]


class WrongColumns(Bolt):
    def process(self, key, value):
        def later():
            self.emit_columns([key], [value])  # type: ignore[attr-defined]

        later()


class WrongEmit(BatchBolt):
    def process_batch(self, keys, values):
        for key in keys:
            self.emit(key, 1)  # type: ignore[attr-defined]


class Own(BatchBolt):
    def emit(self, key, value):
        self.emit_batch([(key, value)])

    def process_batch(self, keys, values):
        self.emit(keys[0], 1)


class Assigned(BatchBolt):
    def open(self, context):
        self.emit = print

    def process_batch(self, keys, values):
        self.emit(keys[0])


class OfAnother(BatchBolt):
    def process_batch(self, keys, values):
        for value in values:
            value.emit(1)


@pytest.mark.parametrize(
    ("cls", "base"),
    [(Plain, Bolt), (Batches, BatchBolt), (Own, BatchBolt), (Assigned, BatchBolt), (OfAnother, BatchBolt)],
)
def test_ones_own_way_is_fine(cls, base):
    check_emits(cls, "count", base)


@pytest.mark.parametrize(
    ("cls", "base", "said"),
    [
        (WrongBatch, Bolt, "self.emit_batch, which a Bolt has not; write self.emit"),
        (WrongColumns, Bolt, "self.emit_columns, which a Bolt has not; write self.emit"),
        (WrongEmit, BatchBolt, "self.emit, which a BatchBolt has not; write self.emit_batch"),
    ],
)
def test_the_others_way_is_refused_with_its_remedy(cls, base, said):
    with pytest.raises(TopologyError, match=r"unit 'count'") as error:
        check_emits(cls, "count", base)
    assert said in str(error.value)


def test_what_is_inherited_is_looked_at_too():
    class Derived(WrongEmit):
        pass

    with pytest.raises(TopologyError):
        check_emits(Derived, "count", BatchBolt)
