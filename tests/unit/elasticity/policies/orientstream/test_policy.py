"""The policy orientstream on views of a line of queues, in virtual time."""

from __future__ import annotations

import sys
from dataclasses import replace

import depth
import pytest

from esault import UsageError
from esault.elasticity.action import Advise, Rescale
from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.elasticity.policies.orientstream.features import Remembered, UnitState, WindowState, window_state
from esault.elasticity.policies.orientstream.policy import FULL, OrientStream, by_capacity, candidates
from esault.elasticity.policy import make, parameters
from esault.elasticity.view import RunView, Sample, UnitView, UnitWindow
from esault.messages.probe import HostUsage
from esault.topology.plan import UnitPlan

pytestmark = pytest.mark.slow  # not in `make quick`

SERVICE = {"split": 0.004, "count": 0.010}
#: tuples that leave for each that comes
OUT = {"split": 2.0, "count": 0.0}


class Line:
    """lines -> split -> count as fluid queues; what a policy wants is done at once."""

    def __init__(self, policy, slots=40, most=None, memory=False):
        self.policy, self.slots, self.most, self.memory = policy, slots, most, memory
        self.width = {"split": 1, "count": 1}
        self.waiting = {"split": 0.0, "count": 0.0}
        self.now, self.changed_at, self.said = 0.0, dict.fromkeys(self.width), []

    def view(self, rate):
        """One second with so many tuples."""
        start, self.now = self.now, self.now + 1.0
        windows = {"lines": UnitWindow(start, self.now, rate, rate, rate)}
        come = rate
        for name, width in self.width.items():
            before = self.waiting[name]
            done = min(before + come, width / SERVICE[name])
            self.waiting[name] = before + come - done
            windows[name] = UnitWindow(
                start, self.now, come, done, done * OUT[name], busy=done * SERVICE[name], waiting_before=before,
                waiting=self.waiting[name], width=width,
            )  # fmt: skip
            come = done * OUT[name]
        units = {}
        for name, window in windows.items():
            kind = "spout" if name == "lines" else "bolt"
            plan = UnitPlan(name, kind, max_parallelism=self.most)
            samples = tuple(Sample(i, memory=10**6) for i in range(self.width.get(name, 1)))
            units[name] = UnitView(
                name=name,
                plan=plan,
                samples=samples,
                changing=False,
                changed_at=self.changed_at.get(name),
                spouts=("lines",),
                window=window,
            )
        senders = {"lines": (), "split": ("lines",), "count": ("split",)}
        free = self.slots - sum(self.width.values())
        return RunView(self.now, self.now, units, (), free, ("split", "count"), senders)

    def run(self, rates):
        for rate in rates:
            actions = self.policy.decide(self.view(rate))
            for action in actions:
                self.said.append((self.now, action))
                if isinstance(action, Rescale):
                    self.width[action.unit] = action.n
                    self.changed_at[action.unit] = self.now
        return self.width

    def utilisation(self, rate):
        return rate * SERVICE["split"] / self.width["split"], 2 * rate * SERVICE["count"] / self.width["count"]


def test_every_parameter_of_the_paper_is_there():
    known = parameters("orientstream")
    assert known["period"] == 1.0
    assert set(known) >= {"latency", "throughput", "alpha", "beta", "ensemble", "spread", "seed", "warm_up"}
    policy = make("orientstream:latency=0.5,ensemble=blend,spread=var,alpha=0.3,beta=0.7")
    assert (policy.latency, policy.ensemble, policy.spread) == (0.5, "blend", "var")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("orientstream:ensemble=median", "must be one of: od, edk, mean, best, blend"),
        ("orientstream:alpha=0.9", "alpha=0.9 and beta=0.5 must make 1"),
        ("orientstream:latency=0", "latency=0 must be above 0"),
        ("orientstream:target=1.5", "at most 1"),
    ],
)
def test_what_cannot_be_is_refused(spec, says):
    with pytest.raises(UsageError, match="orientstream") as caught:
        make(spec)
    assert says in str(caught.value)


def test_without_river_it_cannot_be_made(monkeypatch):
    for name in ("river", "river.stats"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install 'esault\[learn\]'"):
        make("orientstream")


def test_while_untrained_capacity_decides_for_all_units_at_once():
    line = Line(OrientStream())
    line.run([400.0])
    actions = [a for _, a in line.said]
    assert (actions[0].unit, actions[0].n) == ("split", 3)
    assert "0 of 30 windows are learnt; 400 tuples/s" in actions[0].reason
    line.run([400.0] * 10)
    assert line.width["split"] == 3  # 1.6 busy
    assert 12 <= line.width["count"] <= 16  # 8 busy, and a backlog had to go
    assert line.waiting["count"] == 0


@pytest.mark.parametrize("ensemble", depth.chosen(["od", "blend"], ("od",)))
def test_trained_it_keeps_up_with_a_load_that_moves_and_uses_less_than_capacity_takes(ensemble):
    line = Line(OrientStream(ensemble=ensemble))
    load = [200.0 + 200.0 * ((i // 8) % 3) for i in range(110)]
    line.run(load[:60])
    assert line.policy.trained
    used = []
    for rate in load[60:]:
        line.run([rate])
        used.append(sum(line.width.values()))
        assert line.waiting["split"] + line.waiting["count"] < 2.5 * 600 * 2
    by_rule = Line(OrientStream(warm_up=10**6))
    ruled = []
    for rate in load:
        by_rule.run([rate])
        ruled.append(sum(by_rule.width.values()))
    assert sum(used) < sum(ruled[60:])
    line.run([300.0] * 20)
    assert line.waiting == {"split": 0.0, "count": 0.0}
    assert all(0.3 < u <= FULL for u in line.utilisation(300.0))
    assert any("predicted" in a.reason for _, a in line.said)


def test_it_repeats_itself():
    def said():
        line = Line(OrientStream(seed=5))
        line.run([200.0 + 100.0 * ((i // 5) % 4) for i in range(70)])
        return line.said

    assert said() == said()


def test_it_shrinks_only_after_patience():
    line = Line(OrientStream(patience=3))
    line.run([400.0] * 20)
    before = dict(line.width)
    line.run([100.0] * 3)
    assert line.width == before
    line.run([100.0])
    assert all(line.width[name] < before[name] for name in before)


@pytest.mark.parametrize("ensemble", depth.chosen(["od", "blend"], ["od"]))
def test_trained_it_takes_widths_that_it_has_never_seen(ensemble):
    line = Line(OrientStream(ensemble=ensemble))
    line.run([400.0 + i % 7 for i in range(60)])
    assert line.policy.trained
    line.run([60.0] * 20)
    assert line.width == {"split": 1, "count": 2}


def test_idle_it_shrinks_and_says_nothing():
    line = Line(OrientStream())
    line.run([400.0 + i % 7 for i in range(45)])
    line.run([0.0] * 12)
    assert line.width == {"split": 1, "count": 1}
    assert not [a for _, a in line.said if isinstance(a, Advise)]


def test_nothing_is_done_without_a_window_or_while_a_unit_changes():
    line = Line(OrientStream())
    view = line.view(400.0)
    changing = {**view.units, "count": UnitView(**{**view.units["count"].__dict__, "changing": True})}
    assert line.policy.decide(RunView(**{**view.__dict__, "units": changing})) == ()
    blind = {**view.units, "count": UnitView(**{**view.units["count"].__dict__, "window": None})}
    assert line.policy.decide(RunView(**{**view.__dict__, "units": blind})) == ()
    assert line.policy.configuration(400.0) is None


def test_windows_in_which_a_unit_changed_are_not_learnt():
    line = Line(OrientStream())
    line.run([400.0])
    assert line.policy.models["latency"].samples == 0
    line.run([400.0])  # the widths of this window are new
    assert line.policy.models["latency"].samples == 0


def test_after_a_window_that_was_nothing_like_predicted_capacity_decides_once():
    line = Line(OrientStream(patience=0))
    line.run([300.0 + i % 5 for i in range(60)])
    line.run([900.0, 900.0, 900.0])
    reasons = [a.reason for at, a in line.said if at > 60]
    assert "had been predicted; 900 tuples/s at 65%" in reasons[0]
    assert not any("had been predicted" in r for at, r in ((at, a.reason) for at, a in line.said) if at > 61)


def test_what_cannot_be_met_is_said_once():
    line = Line(OrientStream(warm_up=3, latency=0.001), slots=14)
    line.run([400.0] * 12)
    advice = [a for _, a in line.said if isinstance(a, Advise)]
    assert len(advice) == 1
    assert "below 0.001 s" in advice[0].reason


def test_a_unit_that_gets_little_holds_nobody_up():
    line = Line(OrientStream())
    view = line.view(400.0)
    few = UnitWindow(0.0, 1.0, 3, 3, 0, busy=0.03)
    quiet = {**view.units, "count": UnitView(**{**view.units["count"].__dict__, "window": few})}
    actions = line.policy.decide(RunView(**{**view.__dict__, "units": quiet}))
    assert [(a.unit, a.n) for a in actions] == [("split", 3)]
    for _ in range(3):  # 12 tuples by then
        line.policy.decide(RunView(**{**view.__dict__, "units": quiet}))
    assert line.policy._remembered.service["count"] == pytest.approx(0.01)


def test_what_is_measured_of_a_window():
    windows = {
        "a": UnitWindow(0.0, 1.0, 100, 100, 100, lag_before=0.0, lag=20.0),
        "b": UnitWindow(0.0, 1.0, 50, 50, 50),
        "left": UnitWindow(0.0, 1.0, 100, 80, 80, busy=0.8, waiting_before=0, waiting=20, width=1),
        "right": UnitWindow(0.0, 1.0, 50, 50, 50, busy=1.0, width=2),
        "end": UnitWindow(0.0, 1.0, 130, 130, 0, busy=0.13, width=1),
    }
    senders = {"a": (), "b": (), "left": ("a",), "right": ("b",), "end": ("left", "right")}
    units = {}
    for name, window in windows.items():
        told = {"right": (0.4, 0.6)}.get(name, (None,) * window.width)
        samples = tuple(Sample(i, latency=t, memory=100) for i, t in enumerate(told))
        units[name] = UnitView(name, UnitPlan(name, "bolt" if senders[name] else "spout"), samples, window=window)
    hosts = (HostUsage("h", 4, 0.5, 0, 4000),)
    managed = ("left", "right", "end")
    found = window_state(RunView(1.0, 1.0, units, hosts, 6, managed, senders), Remembered())
    assert found.rate == 170  # 150 read, and 20 more were due
    assert found.demand("right", 150.0) == pytest.approx(150 * (1 / 3) * 0.02)
    assert found.slots == 10
    assert found.measured["cpu"] == pytest.approx((0.8 + 1.0 + 0.13) / 10)
    assert found.measured["memory"] == pytest.approx(400 / 4000)
    # b, right and end: 0.5 s are told of right, which is more than the 0.2 + 0.01 + 0.125 s by way of a and left.
    assert found.measured["latency"] == pytest.approx(0.5 + 0.001)
    assert found.measured["throughput"] == pytest.approx(80 / (170 * 100 / 150))


def test_a_configuration_for_any_rate():
    line = Line(OrientStream())
    line.run([300.0] * 10)
    low, high = line.policy.configuration(100.0), line.policy.configuration(600.0)
    assert low.parallelism < high.parallelism
    assert dict(high.widths)["count"] >= 600 * 2 * 0.01


def test_with_pipelines_it_learns_of_the_load_and_leaves_changes_to_them():
    line = Line(OrientStream(pipelines=True))
    line.run([300.0] * 3)
    assert line.width == {"split": 1, "count": 1}
    assert line.waiting["count"] > 0
    # What waits belongs to the pipelines before, which are done by then.
    assert line.policy.configuration(100.0) == by_capacity(cleared(line), 100.0, line.policy.target, 3.0)
    assert line.policy.configuration(600.0).parallelism > line.policy.configuration(100.0).parallelism


def cleared(line):
    """The line as measured, with nothing that waits."""
    state = window_state(line.view(300.0), Remembered())
    return replace(state, units={name: replace(unit, waiting=0.0) for name, unit in state.units.items()})


def test_a_source_that_is_held_back_is_taken_to_offer_more():
    line = Line(OrientStream())
    view = line.view(100.0)
    spout = view.units["lines"]
    for window, rate in (
        (UnitWindow(0.0, 1.0, 100, 100, 100, lag_before=0.0, lag=50.0), "150 tuples/s"),
        (UnitWindow(0.0, 1.0, 100, 100, 100, backpressured=0.9), "200 tuples/s"),
    ):
        units = {**view.units, "lines": UnitView(**{**spout.__dict__, "window": window})}
        actions = OrientStream().decide(RunView(**{**view.__dict__, "units": units}))
        assert rate in actions[0].reason


def state(free=20, **units):
    return WindowState(100.0, units, 30, free, {})


def unit(width=2, service=0.01, waiting=0.0, least=1, most=12, visits=1.0):
    return UnitState(width, visits, service, waiting, waiting, least, most)


def test_capacity():
    one = state(a=unit(), b=unit(visits=3.0))
    assert by_capacity(one, 100.0, 0.5, 3.0) == Configuration((("a", 2), ("b", 6)))
    assert by_capacity(one, 1000.0, 0.5, 3.0) == Configuration((("a", 12), ("b", 12)))
    assert by_capacity(state(free=1, a=unit(), b=unit()), 1000.0, 0.5, 3.0).parallelism == 5
    assert by_capacity(state(a=unit(waiting=600.0)), 100.0, 0.5, 3.0) == Configuration((("a", 6),))


def test_candidates_can_keep_up_and_are_within_bounds():
    one = state(a=unit(width=1), b=unit(visits=3.0, most=5))
    found = candidates(one, 150.0, 3.0)
    assert len(found) == len(set(found)) > 1
    assert [c.parallelism for c in found] == sorted(c.parallelism for c in found)
    for c in found:
        widths = dict(c.widths)
        assert FULL * widths["a"] >= 1.5
        assert FULL * widths["b"] >= 4.5
        assert widths["b"] <= 5
    assert candidates(one, 10_000.0, 3.0) == [Configuration((("a", 12), ("b", 5)))]
