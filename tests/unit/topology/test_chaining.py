"""Which bolts are chained, and the plan in which they are."""

from __future__ import annotations

import functools

import pytest

from esault import BatchBolt, Bolt, Topology, UsageError, by_key, dead_letter, fail, shuffle, single
from esault.errors import TopologyFailed
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.topology.chaining import chain, described, why_not_chained
from esault.topology.plan import Outlet
from tests.programs.units import Landed
from tests.programs.units import Nothing as Lines


class Split(Bolt):
    def __init__(self, by=" "):
        self.by = by

    def process(self, key, value):
        for word in value.split(self.by):
            self.emit(word, [1])


class Grow(Bolt):
    """Changes what it gets."""

    def process(self, key, value):
        value.append(len(key))
        self.emit(key, value)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value[0]
        self.emit(key, self.total)


class Finishes(Bolt):
    def process(self, key, value): ...

    def finish(self): ...


class Collects(Bolt):
    def __init__(self):
        self.seen = []

    def process(self, key, value):
        self.seen.append(value)


class Sets(Bolt):
    def process(self, key, value):
        setattr(self, "last", value)


class InLambda(Bolt):
    def process(self, key, value):
        def put():
            self.last = value

        put()


def remember(bolt, value):
    bolt.last = value


class PassesItself(Bolt):
    def process(self, key, value):
        remember(self, value)


class PassesItselfWithin(Bolt):
    def process(self, key, value):
        [remember(self, each) for each in value]


class Comprehends(Bolt):
    def process(self, key, value):
        self.emit(key, [each for each in value])  # noqa: C416


class Hides(Bolt):
    """Changes itself where no look at its class can see it."""

    keep = functools.partialmethod(remember)

    def process(self, key, value):
        self.keep(value)


def words(**options):
    t = Topology("t")
    lines = t.spout("lines", Lines())
    split = lines.bolt("split", Split, grouping=shuffle(), **options)
    split.bolt("grow", Grow, grouping=shuffle()).bolt("count", Count, grouping=by_key())
    split.bolt("again", Count, grouping=by_key())
    return t


def test_a_row_of_small_bolts_runs_in_the_process_of_the_first_unit():
    plan = chain(words().plan())
    assert dict(plan.chained) == {"split": "lines", "grow": "lines"}
    assert list(plan.units) == ["lines", "count", "again"]
    assert plan.units["lines"].targets == ("again", "count")
    assert plan.senders("count") == plan.senders("again") == ("lines",)
    assert plan.units["count"].inputs[0].stream == "grow"
    assert chain(plan) is plan


@pytest.mark.parametrize(
    "apart", [{"chain": False}, {"parallelism": 2}, {"max_parallelism": 1}, {"buffer": 9, "overflow": "drop"}]
)
def test_one_that_is_to_stand_apart_takes_the_next_ones_in(apart):
    plan = chain(words(**apart).plan())
    assert dict(plan.chained) == {"grow": "split"}
    assert any("not chained: split (" in line for line in described(words(**apart).plan()))
    assert dict(chain(words().plan(), ["split"]).chained) == {"grow": "split"}


def logged(hook):
    @functools.wraps(hook)
    def call(self, key, value):
        self.calls = key
        hook(self, key, value)

    return call


class Wrapped(Bolt):
    """Changes itself in a decorator, below which what it wraps changes nothing."""

    @logged
    def process(self, key, value): ...


class ByProperty(Bolt):
    @property
    def last(self):
        return None

    @last.setter
    def last(self, value):
        self.kept = value

    def process(self, key, value): ...


class Refuses(Bolt):
    """Cannot be made where a server is away."""

    away = False

    def __init__(self):
        if self.away:
            raise ConnectionError

    def process(self, key, value): ...


class InBatches(BatchBolt):
    def process_batch(self, rows): ...


@pytest.mark.parametrize(
    "kind",
    [
        Finishes,
        Collects,
        Sets,
        InLambda,
        Wrapped,
        ByProperty,
        InBatches,
        PassesItself,
        PassesItselfWithin,
        functools.partial(Split, []),
    ],
)
def test_what_keeps_something_is_not_chained(kind):
    t = Topology("t")
    t.spout("lines", Lines()).bolt("bolt", kind, grouping=shuffle())
    assert why_not_chained(t.plan().units["bolt"])
    assert not chain(t.plan()).chained


def test_one_that_cannot_be_made_here_is_not_chained(monkeypatch):
    t = Topology("t")
    t.spout("lines", Lines()).bolt("bolt", Refuses, grouping=shuffle())
    assert why_not_chained(t.plan().units["bolt"]) is None
    monkeypatch.setattr(Refuses, "away", True)
    assert why_not_chained(t.plan().units["bolt"]) == "its object cannot be made here"


def test_other_groupings_and_event_time_behind_a_bolt_are_not_chained():
    t = Topology("t")
    lines = t.spout("lines", Lines())
    lines.bolt("one", Grow, grouping=single())
    timed = lines.bolt("timed", Grow, grouping=shuffle()).timed(lambda value: 0.0)
    timed.distinct("distinct", within=5)
    assert not chain(t.plan()).chained


def landed(chaining, spouts, **more):
    local = LocalRuntime(words(), spouts=spouts, settings=Settings(chaining=chaining, watch_values=True), **more)
    local.run_until_drained()
    return local


def test_it_gives_the_same_and_counts_by_unit():
    spouts = {"lines": [("f", "a b a"), ("f", "b")]}
    chained, apart = landed(True, spouts), landed(False, spouts)
    for unit in ("split", "grow", "count", "again"):
        assert sorted(chained.emitted(unit)) == sorted(apart.emitted(unit))
    assert sorted(chained.emitted("again")) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]  # not those that grew
    report = chained.report()
    assert [(n, u.tuples_in, u.tuples_out, u.chained_to) for n, u in report.units.items()] == [
        ("lines", 0, 2, ""),
        ("split", 2, 4, "lines"),
        ("grow", 4, 4, "lines"),
        ("count", 4, 4, ""),
        ("again", 4, 4, ""),
    ]


class GrowLists(Bolt):
    def process(self, key, value):
        if isinstance(value, list):
            value.append(len(key))
        self.emit(key, value)


def test_a_comprehension_keeps_nothing():
    t = Topology("t")
    t.spout("lines", Lines()).bolt("bolt", Comprehends, grouping=shuffle())
    assert why_not_chained(t.plan().units["bolt"]) is None


@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1, 2), ()])
def test_lists_among_plain_values_are_a_bolts_own(places):
    t = Topology("t")
    rows = [("f", [1] if i in places else i) for i in range(3)]
    lines = t.spout("lines", Lines())
    lines.bolt("grow", GrowLists, grouping=shuffle())
    lines.bolt("also", GrowLists, grouping=shuffle())
    local = LocalRuntime(t, spouts={"lines": rows}, settings=Settings(chaining=True))
    local.run_until_drained()
    expected = [("f", [1, 1] if i in places else i) for i in range(3)]
    assert local.emitted("grow") == local.emitted("also") == expected


def test_what_is_said_about_a_unit_by_itself_keeps_it_apart_and_a_change_is_refused_with_the_remedy():
    assert "split" in landed(True, {"lines": [("f", "a")]}, parallelism={"split": 2}).plan.units
    local = landed(True, {"lines": [("f", "a")]})
    with pytest.raises(UsageError, match="'split' is chained: it runs in the process of 'lines'.*chain=False"):
        local.driver.commands.throttle("split", 2, 1, local.clock())


def test_errors_are_those_of_the_bolt():
    t = Topology("t")
    bolt = t.spout("lines", Lines()).bolt("split", Split, grouping=shuffle(), on_error=dead_letter("d"))
    bolt.map(lambda value: 1 // (value[0] - 1), on_error=dead_letter("d"), name="inverse").sink("s", Landed())
    local = LocalRuntime(t, spouts={"lines": [("f", "a"), ("f", 7)]}, settings=Settings(chaining=True))
    local.run_until_drained()
    assert sorted((each["unit"], each["hook"]) for each in local.dead_letters) == [
        ("split", "process"),
        ("split", "split.inverse"),
    ]
    units = local.report().units
    assert (units["split"].errors, units["split"].dead_letters, units["lines"].errors) == (2, 2, 0)


def test_paths_of_dead_letters_are_found_in_a_long_row(monkeypatch):
    asked = 0
    walk = Outlet.walk

    def counted(self):
        nonlocal asked
        asked += 1
        assert asked < 1000  # twice as many with each bolt would not end
        return walk(self)

    t = Topology("t")
    stream = t.spout("lines", Lines())
    for i in range(60):
        policy = dead_letter(f"d{i}") if i % 30 == 29 else fail()
        stream = stream.bolt(f"split{i}", Split, grouping=shuffle(), on_error=policy)
    stream.map(len, on_error=dead_letter("d59")).map(len, on_error=dead_letter("last")).sink("s", Landed())
    (unit,) = chain(t.plan()).units.values()
    monkeypatch.setattr(Outlet, "walk", counted)
    assert sorted(unit.dead_letter_paths) == ["d29", "d59", "last"]


def test_one_that_keeps_something_after_all_is_found_at_a_checkpoint():
    t = Topology("t")
    t.spout("lines", Lines()).bolt("hides", Hides, grouping=shuffle())
    rows = [("f", "a")] * 40
    local = LocalRuntime(t, spouts={"lines": rows}, settings=Settings(chaining=True, delivery="eo", root_rows=1))
    with pytest.raises(TopologyFailed, match="unit 'hides' is chained, and its object has changed.*chain=False"):
        local.run_until_drained()
