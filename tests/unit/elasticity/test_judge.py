"""The judge: what a policy wants, done or refused, and each written down once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from elasticity_views import sample, view

from esault.elasticity.action import Advise, Migrate, NoChange, Rescale, Split, Throttle
from esault.elasticity.judge import MOST, NO_CHANGE, REST, STANDS, Judge
from esault.errors import PolicyTimeout, UsageError
from esault.messages.change_record import ChangeRecord
from esault.routing.table import OutputTable
from esault.sim import Model, Operator, Source, simulate


class Unit:
    def __init__(self, width=2):
        self.table, self.width, self.calls, self.refuses = OutputTable.even(list(range(1, width + 1))), width, [], ""

    def _call(self, *call):
        if self.refuses:
            raise UsageError(self.refuses)
        self.calls.append(call)
        return 70 + len(self.calls)

    def adopt(self, after, news, now, kind, reason, policy):
        return self._call("adopt", len(after.owners()), news, kind, reason, policy)

    def move(self, owner, now, reason="", policy="by hand", host=None):
        return self._call("move", owner, reason, policy, host)

    def throttle(self, rate, seconds, now):
        self._call("throttle", rate, seconds)


class Bench:
    def __init__(self, ask=None):
        self.wants, self.notices, self.unit, self.asked = [], [], Unit(), 0
        self.judge = Judge(["count"], SimpleNamespace(decide=self.decide), "probe:period=1", self.notices.append, ask)

    def decide(self, view):
        self.asked += 1
        return self.wants() if callable(self.wants) else self.wants

    def look(self, *wants, now=10.0, **options):
        self.wants = wants[0] if len(wants) == 1 and callable(wants[0]) else list(wants)
        before = len(self.judge.log)
        self.judge.decide(view(now, [sample(1), sample(2)], **options), {"count": self.unit}, now)
        return [(each.what, each.outcome) for each in self.judge.log[before:]]


def record(id, dropped=""):
    return ChangeRecord(1.0, "count", "rescale", 2, 4, "", "", 0, 0, 0.0, 1.0, dropped, id=id)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Rescale("half a one", 2.5), "2.5 is no whole number"),
        (Rescale("of a division", 4 / 2), "2.0 is no whole number"),
        (Rescale(3, 3), "its reason is no text"),
        (Split("there is no such place", 1, 10**12), "cannot be split at 1000000000000"),
        (Split("nor this", 1, 0.5), "0.5 is no whole number"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_and_the_run_goes_on(action, why):
    bench = Bench()
    ((what, outcome),) = bench.look(action)
    assert what == "action" and outcome.startswith("refused: ") and why in outcome
    assert not bench.unit.calls and len(bench.notices) == 1


@pytest.mark.parametrize("action", [Rescale("more readers", 3, unit="in"), Migrate("elsewhere", 1, "b", unit="in")])
def test_a_spout_is_not_changed(action):
    class Asks:
        period = 1.0

        def decide(self, view):
            return [action]

    model = Model([Source("in", lambda t: 50.0), Operator("work", ("in",), 0.01)])
    run = simulate(model, Asks(), seconds=5)
    assert run.decisions[0].outcome.startswith("refused: ") and run.latency.count > 200


@pytest.mark.parametrize(("dropped", "outcome"), [("", "done"), ("count/3 died", "dropped: count/3 died")])
def test_a_change_is_begun_and_its_outcome_noted_when_it_has_ended(dropped, outcome):
    bench = Bench()
    assert bench.look(Rescale("much load", 4)) == [("rescale: 2 -> 4", "begun")]
    assert bench.unit.calls == [("adopt", 4, 2, "rescale", "much load", "probe")]
    bench.judge.changed("count", record(70))
    bench.judge.changed("other", record(71))
    assert bench.judge.log[-1].outcome == "begun"
    bench.judge.changed("count", record(71, dropped))
    assert bench.judge.log[-1].outcome == outcome
    bench.judge.changed("count", record(71, "again"))
    assert bench.judge.log[-1].outcome == outcome


def test_what_is_refused_is_told_to_the_user_and_to_the_policy():
    bench = Bench()
    bench.unit.refuses = "it is being changed"
    assert bench.look(Rescale("load", 4)) == [("action", "refused: it is being changed")]
    assert bench.judge.refusals == ("it is being changed",)
    assert bench.notices == ["unit 'count', policy probe: refused: it is being changed; load"]
    assert bench.look(Rescale("load", 4)) == []  # told once, counted twice
    assert bench.judge.log[-1].times == 2
    bench.unit.refuses = ""
    bench.look(Rescale("load", 3))
    assert bench.judge.refusals == ()


def test_throttles_moves_and_advice_are_done_at_once():
    bench = Bench()
    assert bench.look(Throttle("slow", 500.0, 3.0)) == [("throttle to 500/s for 3 s", "done")]
    assert bench.look(Advise("add a host")) == [("advice", "said")]
    assert bench.notices == ["add a host"]
    assert bench.unit.calls == [("throttle", 500.0, 3.0)]
    bench.unit.refuses = "no"
    assert bench.look(Throttle("slow", 500.0, 3.0)) == [("action", "refused: no")]
    assert bench.judge.refusals == ("no",)


def test_a_policy_that_fails_is_told_of_and_asked_again():
    bench = Bench()
    assert bench.look(lambda: 1 / 0) == [("policy failed", "failed")]
    assert bench.look(lambda: 1 / 0, now=11.0) == []
    assert bench.judge.log[-1].times == 2
    assert len(bench.notices) == 1
    assert "ZeroDivisionError" in bench.notices[0]
    assert bench.look(lambda: None, now=12.0) == []  # no list: a TypeError of its own
    assert bench.look(lambda: ["nonsense"], now=13.0)[0][1].startswith(("refused", "failed"))
    assert bench.look(Rescale("load", 4), now=14.0) == [("rescale: 2 -> 4", "begun")]


def test_one_that_takes_too_long_rests():
    def ask(call):
        raise PolicyTimeout("it took 1 s")

    bench = Bench(ask)
    assert bench.look(now=10.0) == [("policy too slow", "failed")]
    assert "it took 1 s; it is asked again in 10 s" in bench.notices[0]
    bench.judge._ask = lambda call: call()
    bench.look(now=10.0 + REST - 0.1)
    assert bench.asked == 0
    bench.look(now=10.0 + REST)
    assert bench.asked == 1


def test_a_reason_for_doing_nothing_is_written_once_it_has_stood_for_a_while():
    bench = Bench()
    assert bench.look(NoChange("3 slots", "slots"), now=10.0) == []
    assert bench.judge.standing == {"count": "3 slots"}
    assert bench.look(NoChange("4 slots", "slots"), now=10.0 + STANDS - 0.1) == []
    assert bench.look(NoChange("5 slots", "slots"), now=10.0 + STANDS) == [(NO_CHANGE, "said")]
    assert bench.judge.log[-1].reason == "5 slots"
    assert bench.look(NoChange("6 slots", "slots"), now=20.0) == []
    assert bench.look(NoChange("none", "budget"), now=21.0) == []
    assert bench.look(NoChange("9 slots", "slots"), now=22.0) == []  # it swung
    assert bench.look(NoChange("none", "budget"), now=23.0) == []
    assert bench.look(NoChange("none", "budget"), now=23.0 + STANDS) == [(NO_CHANGE, "said")]
    assert bench.look(now=40.0) == []
    assert bench.judge.standing == {}


def test_units_that_it_does_not_judge_are_left_alone():
    bench = Bench()
    (what, outcome), *_ = bench.look(Rescale("load", 4, unit="other"))
    assert (what, outcome) == ("action", "refused: there is no unit 'other' that this policy may change")
    assert bench.unit.calls == []


def test_a_move_needs_a_host_that_is_known():
    bench = Bench()
    assert bench.look(Migrate("hot", 1, "nowhere"))[0][1].startswith("refused")
    assert bench.unit.calls == []


def test_the_oldest_decisions_go_first():
    bench = Bench()
    for n in range(MOST + 5):
        bench.judge._write(float(n), "count", "advice", str(n), "said")
    assert len(bench.judge.log) == MOST
    assert bench.judge.log[0].reason == "5"
