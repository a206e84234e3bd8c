"""Windows with several results, in order and by the clock: what is refused, what fails, and what the clock does to a run."""

from __future__ import annotations

from collections import Counter

import pytest

from esault import Bolt, Spout, Topology, dead_letter, skip
from esault.aggregates import count, sum
from esault.errors import TopologyError, TopologyFailed
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock, Sent
from esault.windows import CalendarWindow, CountWindow, Pane, SessionWindow, SlidingWindow, TumblingWindow


class Told(Bolt):
    def __init__(self):
        self.values = ()

    def process(self, key, value):
        if value == "bad":
            raise ValueError("bad")
        self.values = (*self.values, value)

    def finish(self):
        self.emit(self.key, (*self.pane, self.values))


def topology(rows, window=TumblingWindow(10), bolt=Told, **options):
    t = Topology("panes")
    if options.get("by") != "processing":
        options = {"time": lambda value: 1 if value == "bad" else value, **options}
    t.spout("rows", Items(rows)).window("w", bolt, window, **options).sink("out", Collect())
    return t


def landed(*args, **options):
    local = LocalRuntime(topology(*args, **options))
    local.run_until_drained()
    return [row.value for row in local.landed("out")]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"updates": "all"}, "updates='all'; take 'accumulate'"),
        ({"updates": "accumulate"}, "say allowed_lateness=SECONDS"),
        ({"allowed_lateness": 5}, "with allowed_lateness a window has several results; say what becomes"),
        ({"early_count": 2, "last_pane": True}, "with early_count and last_pane a window"),
        ({"updates": "discard", "early_count": 0}, "early_count=0 must be a whole number"),
        ({"updates": "discard", "early_count": True}, "early_count=True must be a whole number"),
        ({"updates": "discard", "early_seconds": -1}, "early_seconds"),
        ({"updates": "discard", "allowed_lateness": -1}, "allowed_lateness"),
        ({"ordered": 1}, "ordered=1 must be True or False"),
        ({"by": "clock"}, "by='clock'; windows close by 'event' or by 'processing' time"),
        ({"by": "processing", "lateness": 3, "idle": 2}, "leave lateness and idle out with by='processing'"),
        ({"by": "processing", "updates": "discard", "allowed_lateness": 3}, "leave allowed_lateness out"),
        ({"window": SessionWindow(3), "ordered": True}, "a session gets its tuples in the order of their times"),
        ({"window": SessionWindow(3), "updates": "discard", "early_count": 2}, "Leave early_count out"),
        ({"window": SessionWindow(3), "by": "processing"}, "Leave by out"),
    ],
)
def test_what_makes_no_sense_is_refused(options, text):
    with pytest.raises(TopologyError, match="unit 'w': ") as caught:
        topology([], **options)
    assert text in str(caught.value)


def test_windows_of_tuples_have_no_panes():
    for options in ({"ordered": True}, {"by": "processing"}, {"updates": "discard", "early_count": 1}):
        with pytest.raises(
            TopologyError, match=r"a CountWindow closes with its last tuple, and CountWindow\(size, every=n\)"
        ):
            Topology("t").spout("rows", Items([])).window("w", Told, CountWindow(3), **options)


def test_a_time_by_the_clock_is_refused():
    with pytest.raises(TopologyError, match="leave time out with by='processing'"):
        Topology("t").spout("rows", Items([])).window("w", Told, TumblingWindow(3), time=lambda v: v, by="processing")


def test_a_window_with_one_result_has_one_pane():
    assert landed([("a", 1)]) == [("on_time", 0, True, (1,))]
    assert landed([("a", 1)], SessionWindow(3)) == [("on_time", 0, True, (1,))]
    assert Pane("early", 0, False).is_first and not Pane("late", 1, False).is_first


def test_a_pane_of_ones_own_is_refused_where_the_engine_has_one():
    class Own(Told):
        def __init__(self):
            super().__init__()
            self.pane = "mine"

        def finish(self):
            self.emit(self.key, self.pane)

    assert landed([("a", 1)], bolt=Own) == ["mine"]
    with pytest.raises(TopologyFailed, match=r"Own sets self\.pane, which is the engine's; use another name"):
        landed([("a", 1)], bolt=Own, updates="discard", early_count=1)


@pytest.mark.parametrize("window", [TumblingWindow(10), SlidingWindow(10, 5), CalendarWindow("day", "Europe/Berlin")])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("policy", [skip(), skip(retries=1), "dead_letter"])
def test_a_tuple_that_fails_is_in_no_pane(window, ordered, policy, tmp_path):
    policy = dead_letter(str(tmp_path / "dead.jsonl")) if policy == "dead_letter" else policy
    rows = [("a", 1), ("a", "bad"), ("a", 2), ("b", "bad"), ("a", 3)]
    found = landed(rows, window, on_error=policy, ordered=ordered, updates="accumulate", early_count=2, lateness=0)
    assert all("bad" not in each[3] for each in found)
    whole = [each for each in found if each[2]]
    assert Counter(each[3] for each in whole)[(1, 2, 3)] == len(list(window.indices(1)))
    # In order, a tuple is tried when its pane comes, and its key has a window until then.
    assert len(whole) == len(list(window.indices(1))) * (2 if ordered else 1)


@pytest.mark.parametrize("lateness", [30, 0])
def test_a_window_that_a_failing_tuple_opens_takes_no_end_of_another_along(lateness):
    """The end of its lateness is the other's end."""
    local = LocalRuntime(
        topology([], on_error=skip(), updates="accumulate", allowed_lateness=10, lateness=lateness),
        spouts={"rows": Sent()},
    )
    local.send("rows", ("a", 12))
    local.send("rows", ("a", "bad"))
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == [("on_time", 0, False, (12,))]
    assert local.report().units["w"].errors == 1


def test_a_result_that_fails_takes_nothing_back():
    class Flaky(Told):
        def finish(self):
            self.emit(self.key, ("half", self.values))
            if len(self.values) == 2:
                raise ValueError("two")

    found = landed([("a", 1), ("a", 2), ("a", 3)], bolt=Flaky, updates="retract", early_count=1, on_error=skip())
    one, three = ("half", (1,)), ("half", (1, 2, 3))
    # Of the pane with two nothing is left; the one at the end is that of the third again.
    assert found == [(one, 1), (one, -1), (three, 1), (three, -1), (three, 1)]


def test_what_is_taken_back_is_what_was_given():
    class Mutable(Bolt):
        def __init__(self):
            self.all = []

        def process(self, key, value):
            self.all.append(value)

        def finish(self):
            given = list(self.all)
            self.emit(self.key, given)
            self.kept = given

        def __getstate__(self):
            return {"all": self.all}

    found = landed([("a", 1), ("a", 2)], bolt=Mutable, updates="retract", early_count=1)
    assert found == [([1], 1), ([1], -1), ([1, 2], 1), ([1, 2], -1), ([1, 2], 1)]


def test_aggregates_say_which_pane_they_are_of():
    t = Topology("t")
    rows = t.spout("rows", Items([("a", {"at": at, "n": at}) for at in (1, 2, 3, 14)]))
    sales = rows.aggregate(
        "sales",
        {"n": count(), "sum": sum("n")},
        TumblingWindow(10),
        time=lambda v: v["at"],
        updates="accumulate",
        early_count=2,
    )
    sales.sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    found = [(row.value["start"], row.value["pane"], row.value["n"], row.value["sum"]) for row in local.landed("out")]
    assert [(start, tuple(pane), n, s) for start, pane, n, s in found] == [
        (0, ("early", 0, False), 2, 3),
        (0, ("on_time", 1, True), 3, 6),
        (10, ("on_time", 0, True), 1, 14),
    ]
    with pytest.raises(TopologyError, match="'pane' is what the window says of itself"):
        rows.aggregate(
            "x", {"pane": count()}, TumblingWindow(10), time=lambda v: v["at"], updates="discard", early_count=2
        )
    with pytest.raises(TopologyError, match="updates and allowed_lateness is for windows"):
        rows.aggregate("x", {"n": count()}, updates="discard", allowed_lateness=3)


class Given(Spout):
    """Gives what a test has put into it."""

    def __init__(self):
        self.waiting = []

    def read(self, limit):
        rows, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return rows


def test_the_clock_closes_windows_of_a_run_and_asks_for_early_results():
    t, spout = Topology("t"), Given()
    rows = t.spout("rows", spout)
    rows.window("w", Told, TumblingWindow(10), by="processing", parallelism=2).sink("out", Collect())
    early = rows.window("e", Told, TumblingWindow(100), time=lambda v: v, updates="discard", early_seconds=4)
    early.sink("early", Collect())
    clock = ManualClock(1000.0)
    local = LocalRuntime(t, clock=clock)
    spout.waiting += [("a", 1), ("b", 2)]
    local.run_for(1)
    local.scale("w", 3)
    local.run_for(4.5)
    assert [(row.key, row.value) for row in local.landed("out")] == []
    assert {(row.key, row.value) for row in local.landed("early")} == {
        ("a", ("early", 0, False, (1,))),
        ("b", ("early", 0, False, (2,))),
    }
    local.run_for(6)
    assert {(row.key, row.value) for row in local.landed("out")} == {
        ("a", ("on_time", 0, True, (1,))),
        ("b", ("on_time", 0, True, (2,))),
    }
