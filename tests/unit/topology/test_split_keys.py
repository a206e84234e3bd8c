"""Windows whose hot keys may be split, as a topology is written: two units, and what is refused with its remedy."""

from __future__ import annotations

import re

import pytest

from esault import BatchBolt, Bolt, Topology, TopologyError, by_key, shuffle
from esault.sources import Items
from esault.topology.declared import misfits
from esault.windows import SessionWindow, TumblingWindow


class Total(Bolt[str, int, str, int]):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def combine(self, other):
        self.total += other.total

    def finish(self):
        self.emit(self.key, self.total)


class Alone(Bolt):
    def process(self, key, value):
        pass


class Whole(BatchBolt):
    def process_batch(self, rows):
        pass


class Waits(Bolt):
    async def process(self, key, value):
        pass

    def combine(self, other):
        pass


def window(factory=Total, kind=TumblingWindow(10), **options):
    t = Topology("t")
    rows = t.spout("rows", Items([("a", 1)]))
    rows.window("count", factory, kind, time=lambda value: value, split_hot_keys=True, **options)
    return t


def test_there_is_a_unit_for_parts_which_is_as_wide_as_was_asked_for_and_one_that_combines():
    plan = window(parallelism=3, max_parallelism=5, streams=("beside",)).plan()
    assert list(plan.units) == ["rows", "count.partial", "count"]
    part, whole = plan.units["count.partial"], plan.units["count"]
    assert (part.parallelism, part.max_parallelism, whole.parallelism) == (3, 5, 1)
    assert (set(part.streams), set(whole.streams)) == ({"", "late"}, {"", "late", "beside"})
    assert (part.in_parts, whole.in_parts) == (True, False)
    assert repr(part.inputs[0].grouping) == "by_key(), hot keys split"
    assert misfits(plan) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"factory": Alone}, "Alone must define combine(self, other)"),
        ({"factory": lambda: Total()}, "pass the class, or a functools.partial of it"),
        ({"kind": SessionWindow(5)}, "take TumblingWindow, SlidingWindow or CalendarWindow"),
        ({"by": "processing", "ordered": True}, "does not go with by and ordered"),
        ({"updates": "discard", "allowed_lateness": 5}, "does not go with updates and allowed_lateness"),
        ({"tick_every": 1.0}, "does not go with tick_every"),
        ({"factory": Whole}, "a BatchBolt has one object for all keys"),
        ({"factory": Waits}, "its process is async, which windows do not take"),
        ({"grouping": shuffle()}, "split_hot_keys goes with by_key(), not with shuffle()"),
        ({"streams": ("partial",)}, "choose another name for the stream 'partial'"),
    ],
)
def test_what_cannot_be_split_is_refused_and_nothing_is_added(options, said):
    t = Topology("t")
    rows = t.spout("rows", Items([("a", 1)]))
    given = {"factory": Total, "kind": TumblingWindow(10), **options}
    with pytest.raises(TopologyError, match=re.escape(said)):
        rows.window(
            "count", given.pop("factory"), given.pop("kind"), time=lambda value: value, split_hot_keys=True, **given
        )
    rows.window("count", Total, TumblingWindow(10), time=lambda value: value, split_hot_keys=True, grouping=by_key())
