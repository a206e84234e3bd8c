"""A chained bolt gets processes of its own while tuples flow: each tuple is processed once, whatever befalls it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_bolts import RunningSum as Sum

from esault import Bolt, Topology, UsageError, by_key, shuffle
from esault.flow.worker.metrics import Metrics
from esault.messages.probe import HostUsage, Usage
from esault.messages.settings import Settings
from esault.testing import LocalRuntime, ManualClock
from tests.programs.units import Landed
from tests.programs.units import Nothing as Lines

ROWS = [(f"k{i % 7}", i) for i in range(3000)]


class AddOne(Bolt):
    def process(self, key, value):
        self.emit(key, value + 1)


class Twice(Bolt):
    def process(self, key, value):
        self.emit(key, 2 * value)


class Even(Bolt):
    def process(self, key, value):
        if value % 4 == 0:
            self.emit(key, value)


def topology():
    t = Topology("t")
    rows = t.spout("rows", Lines())
    added = rows.bolt("added", AddOne, shuffle())
    twice = added.bolt("twice", Twice, shuffle())
    twice.sink("doubled", Landed())
    even = twice.bolt("even", Even, shuffle())
    even.sink("evens", Landed())
    even.bolt("sums", Sum, by_key()).sink("totals", Landed())
    return t


DOUBLED = Counter((key, 2 * (value + 1)) for key, value in ROWS)
EVENS = Counter(row for row in DOUBLED.elements() if row[1] % 4 == 0)
TOTALS = {
    key: (len(mine), sum(mine))
    for key in {key for key, _ in EVENS}
    for mine in [[value for other, value in EVENS.elements() if other == key]]
}


def running(seed=0, kept=None, **options):
    given = Settings(**{"chaining": True, "watch_values": True, "reload_state": True, "root_rows": 16, **options})
    return LocalRuntime(topology(), spouts={"rows": ROWS}, seed=seed, settings=given, kept=kept)


def landed(local, sink):
    return Counter((row.key, row.value) for row in local.landed(sink))


def right(local):
    """All is there, and nothing is there twice."""
    assert landed(local, "doubled") == DOUBLED
    assert landed(local, "evens") == EVENS
    last = {}
    for row in local.landed("totals"):
        last[row.key] = max(last.get(row.key, (0, 0)), row.value)
    assert last == TOTALS


def read(local, rows):
    local.run_until(lambda: len(local.emitted("rows")) >= rows)


@pytest.mark.parametrize("name", ["added", "twice", "even"])
@pytest.mark.parametrize("n", [1, 3])
def test_a_chained_bolt_is_scaled_while_tuples_flow(name, n):
    local = running(seed=n)
    assert set(local.plan.chained) == {"added", "twice", "even"}
    read(local, 500)
    local.scale(name, n)
    local.wait_for_change(name)
    read(local, len(local.emitted("rows")) + 500)
    assert len(local.sub_units(name)) == n
    local.run_until_drained()
    right(local)
    report = local.report()
    assert [(c.unit, c.kind, c.before, c.after) for c in report.changes] == [(name, "unchain", 0, n)]
    counted = {name: unit.tuples_in for name, unit in report.units.items()}
    assert counted["added"] == counted["twice"] == counted["even"] == len(ROWS)
    behind = {"added": {"twice", "even"}, "twice": {"even"}, "even": set()}[name]
    assert {each for each, unit in report.units.items() if unit.chained_to == name} == behind


def test_all_of_a_chain_are_given_processes_one_after_the_other_in_any_order():
    for order in (["added", "twice", "even"], ["even", "twice", "added"], ["twice", "even", "added"]):
        local = running()
        for name in order:
            read(local, len(local.emitted("rows")) + 1)
            local.scale(name, 2)
            local.wait_for_change(name)
        local.scale("twice", 3)
        local.wait_for_change("twice")
        assert not local.driver.plan.chained
        local.run_until_drained()
        right(local)


def test_the_source_may_end_while_a_bolt_gets_its_processes():
    local = running()
    read(local, len(ROWS) - 64)
    local.scale("twice", 2)
    local.run_until_drained()
    right(local)


def test_one_at_a_time():
    local = running()
    local.scale("twice", 2)
    with pytest.raises(UsageError, match="'even' is chained, and 'twice' is being given processes"):
        local.scale("even", 2)
    with pytest.raises(UsageError, match="needs one at least"):
        local.scale("even", 0)
    with pytest.raises(UsageError, match="60 more slots"):
        local.scale("even", 60)
    local.wait_for_change("twice")
    with pytest.raises(UsageError, match="esault scale even N"):
        local.split("even", 1)
    local.run_until_drained()
    right(local)


class Slow(Bolt):
    """Takes two milliseconds of the test's clock for each tuple."""

    clock: ManualClock

    def process(self, key, value):
        Slow.clock.advance(0.002)
        self.emit(key, value)


@pytest.mark.parametrize(("policy", "cores"), [("auto", 4), ("auto", 1), ("none", 4)])
def test_one_that_has_too_much_to_do_gets_processes_by_itself_where_cores_are_free(policy, cores):
    Slow.clock = ManualClock()
    t = Topology("t")
    t.spout("rows", Lines()).bolt("added", AddOne, shuffle()).bolt("slow", Slow, shuffle()).sink("out", Landed())
    local = LocalRuntime(
        t,
        spouts={"rows": ROWS},
        clock=Slow.clock,
        policies={"": policy},
        settings=Settings(chaining=True, root_rows=16),
    )
    local.driver.hosts = (HostUsage("localhost", cores=cores, cpu=0.9 / cores),)
    local.run_until_drained()
    assert landed(local, "out") == Counter((key, value + 1) for key, value in ROWS)
    changes = [(c.unit, c.kind, c.policy) for c in local.report().changes if c.kind == "unchain"]
    assert changes == ([("slow", "unchain", "chaining")] if (policy, cores) == ("auto", 4) else [])
    assert local.report().units["added"].chained_to == "rows"
    assert local.report().units["slow"].tuples_in == len(ROWS)


@pytest.mark.parametrize(("work", "wait", "apart"), [(0.9, 0.0, False), (0.1, 0.8, False), (0.1, 0.0, True)])
def test_one_that_waits_for_a_processor_is_not_taken_for_one_that_waits_for_a_service(monkeypatch, work, wait, apart):
    """Where no core is free; `work` and `wait`: shares of its time on a processor, and waiting for one."""
    Slow.clock = clock = ManualClock()
    begun = clock()

    def usage():
        return Usage(work * (clock() - begun), wait * (clock() - begun))

    monkeypatch.setattr(Metrics, "usage", property(lambda self: usage, lambda self, value: None), raising=False)
    t = Topology("t")
    t.spout("rows", Lines()).bolt("slow", Slow, shuffle()).sink("out", Landed())
    more = {"clock": clock, "policies": {"": "auto"}, "settings": Settings(chaining=True, root_rows=16)}
    local = LocalRuntime(t, spouts={"rows": ROWS}, **more)
    local.driver.hosts = (HostUsage("localhost", cores=2, cpu=1.0),)
    local.run_until_drained()
    assert landed(local, "out") == Counter(ROWS)
    assert [c.kind for c in local.report().changes].count("unchain") == apart


FAULTS = st.lists(
    st.tuples(
        st.integers(1, 400),
        st.sampled_from(["added", "twice", "even", "kill", "kill", "checkpoint", "rows+1", "sums"]),
        st.integers(1, 3),
    ),
    max_size=6,
)


@settings(max_examples=40)
@given(faults=FAULTS, seed=st.integers(0, 99), exactly=st.booleans())
@example([(200, "twice", 2), (3, "kill", 1), (50, "kill", 2), (9, "even", 1)], 1, True)
@example([(200, "twice", 2), (3, "kill", 1), (50, "kill", 2), (9, "even", 1)], 2, False)
@example([(300, "even", 3), (1, "checkpoint", 1), (1, "added", 1), (1, "kill", 1)], 3, True)
def test_whatever_befalls_a_run_nothing_is_lost(faults, seed, exactly):
    more = {"delivery": "eo", "checkpoint_every": 0.02} if exactly else {"delivery": "alo"}
    local = running(seed, **more)
    for steps, what, n in faults:
        for _ in range(steps):
            if not local.step():
                local.wait()
            if local.driver.phase == "ended":
                break
        if what == "kill":
            living = [i for unit in local.driver.units.values() for i in unit.subs if local.lives(i)]
            if living:
                local.kill(living[n % len(living)])
        elif local.driver.phase == "running":
            try:
                if what == "checkpoint":
                    local.checkpoint()
                elif what != "rows+1":
                    local.driver.commands.scale(what, n, local.now())
            except UsageError as error:
                assert any(
                    word in str(error) for word in ("try again", "cannot be changed", "no checkpoint", "being changed")
                ), error
    local.run_until_drained()
    if exactly:
        right(local)
    else:
        assert landed(local, "doubled") >= DOUBLED
        assert landed(local, "evens") >= EVENS


def few(**options):
    given = Settings(chaining=True, watch_values=True, reload_state=True, root_rows=16, **options)
    return LocalRuntime(topology(), spouts={"rows": ROWS[:96]}, settings=given)


def values(local, sink):
    return sorted(row.value for row in local.landed(sink))


@pytest.mark.parametrize("again", [False, True])
def test_one_for_which_no_process_can_be_made_stays_chained_and_may_be_asked_for_again(again):
    local = few()
    read(local, 16)
    begun = local.driver.commands.scale("twice", 2, local.now())
    unchaining = local.driver.unchaining
    assert unchaining.drop("twice", "no more processes are allowed", local.now())
    assert unchaining.dropped == {begun: "no more processes are allowed"}
    assert "twice" in local.driver.plan.chained and "twice" not in local.driver.units
    assert local.driver.notices[-1] == "twice stays chained to rows: no more processes are allowed"
    if again:
        local.scale("twice", 1)
        local.wait_for_change("twice")
        assert not unchaining.drop("twice", "too late", local.now()), "what is known to others is not chained again"
    local.run_until_drained()
    assert values(local, "doubled") == sorted(2 * (value + 1) for _, value in ROWS[:96])


@pytest.mark.parametrize("steps", [0, 12, 40])
def test_all_go_back_while_one_gets_its_processes_and_it_has_them_behind_that(steps):
    local = few(delivery="eo")
    read(local, 16)
    local.driver.commands.scale("twice", 1, local.now())
    for _ in range(steps):
        local.step()
    local.driver.going_back.begin("it is asked for", local.now())
    assert "twice" not in local.driver.plan.chained
    local.run_until_drained()
    assert values(local, "doubled") == sorted(2 * (value + 1) for _, value in ROWS[:96])
    (change,) = [change for change in local.report().changes if change.kind == "unchain"]
    assert (change.unit, change.dropped) == ("twice", "")
