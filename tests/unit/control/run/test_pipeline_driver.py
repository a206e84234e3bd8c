"""The seat of pipelines: what it asks for and releases, with time passed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from esault import Bolt, Sink, Topology, UsageError, by_key
from esault.control.run.pipeline_driver import FIRST_CHANGE_MS, PipelineDriver
from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.elasticity.scaling import check_policies
from esault.messages.control import ReleaseSlices
from esault.messages.status import MicroBatch, Status, SubUnitCounts
from esault.sources import Items, MicroBatches


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Landed(Sink):
    def write(self, rows):
        pass


@dataclass
class Policy:
    """A sub-unit for each thousand tuples a second."""

    pipelines: bool = True
    target: float = 0.5
    asked: list = field(default_factory=list)

    def configuration(self, rate):
        self.asked.append(rate)
        return Configuration((("pass", max(1, round(rate / 1000))),))


def plan(spouts=("load",), wrapped=True):
    t = Topology("seat")
    made = [t.spout(name, MicroBatches(Items([]), 1.0, 0.1) if wrapped else Items([])) for name in spouts]
    t.bolt("pass", Pass, inputs={s: by_key() for s in made}).sink("out", Landed())
    return t.plan()


#: a change that took little of a window
QUICK = (SimpleNamespace(seconds=0.05, dropped=""),)


class Run:
    """Units that change when they are told to, and a seat."""

    def __init__(self, spouts=("load",), policy=None, refuse=False):
        self.policy = policy or Policy()
        self.refuse = refuse
        self.told, self.wishes, self.now = [], [], 100.0
        judge = SimpleNamespace(names=("pass",), policy=self.policy, policy_name="own")
        self.seat = PipelineDriver(plan(spouts), {"pass": judge}, self.scale, lambda i, m: self.told.append((i, m)))
        self.unit = SimpleNamespace(width=2, change=None, changing=False, changes=list(QUICK))
        self.units = {"pass": self.unit}
        self.units |= {name: SimpleNamespace(subs={i + 1: None}) for i, name in enumerate(spouts)}

    def scale(self, name, n, now, reason, policy):
        self.wishes.append((name, n, policy))
        if self.refuse:
            raise UsageError("no slot is free")
        self.unit.change = n

    def changed(self, seconds=0.05):
        self.unit.width, self.unit.change = self.unit.change, None
        self.unit.changes.append(SimpleNamespace(seconds=seconds, dropped=""))
        self.step()

    def step(self):
        self.seat.step(self.units, self.now)

    def say(self, incarnation, window=-1, slices=(), under_way=False, unit="load"):
        said = MicroBatch(window, tuple(slices), under_way)
        self.seat.status(unit, Status(incarnation, self.now, SubUnitCounts(), micro_batch=said))
        self.step()

    def news(self):
        told, self.told = self.told, []
        return told


#: slices of 0.1 s at 2, 8, 8 and 2 thousand tuples a second
SLICES = ((0, 200), (1, 800), (2, 799), (3, 200))


def test_a_window_goes_through_pipeline_by_pipeline():
    run = Run()
    run.say(1)
    assert run.news() == [(1, ReleaseSlices(-1, ()))]  # windows wait from now on
    run.say(1, 7, SLICES)
    assert run.news() == [(1, ReleaseSlices(7, (0, 3)))]
    run.say(1, 7, SLICES)  # said before it heard of the release
    run.say(1, 7, SLICES[1:3], True)
    assert (run.news(), run.wishes) == ([], [])
    run.say(1, 7, SLICES[1:3])
    assert run.wishes == [("pass", 8, "own")]
    run.step()
    assert run.news() == []
    run.changed()
    assert run.news() == [(1, ReleaseSlices(7, (1, 2)))]
    run.say(1, -1, (), True)
    run.say(1, 8, SLICES, True)
    assert run.news() == []
    run.say(1, 8, SLICES)
    assert run.news() == [(1, ReleaseSlices(8, (1, 2)))]  # what is in force comes first
    # Slices that hardly differ are asked about once.
    assert run.policy.asked == [2000, 8000] * 2


def test_a_change_that_is_refused_holds_nothing_up():
    run = Run(refuse=True)
    run.say(1, 3, ((0, 800), (1, 200)))
    run.news()
    run.say(1, 3, ((0, 800),))
    assert run.news() == [(1, ReleaseSlices(3, (0,)))]
    assert run.seat.pipelines.missed == 1


def test_there_are_as_many_pipelines_as_changes_have_time():
    run = Run()
    run.unit.changes = []
    assert run.seat.pipelines.change_ms == FIRST_CHANGE_MS
    run.unit.changes = [SimpleNamespace(seconds=s, dropped=d) for s, d in ((0.1, ""), (0.26, ""), (9.0, "it died"))]
    run.say(1, 3, ((0, 100), (1, 200), (2, 300)))
    grouping = run.seat.pipelines.groupings[-1]
    assert run.seat.pipelines.change_ms == 260
    assert (grouping.mode, grouping.most) == ("top_parallelism", 1)  # half of the second is for processing
    assert [(c.parallelism, numbers) for c, numbers in grouping.pipelines] == [(3, (0, 1, 2))]


def test_windows_of_several_spouts_go_through_together():
    run = Run(spouts=("load", "more"))
    run.say(1)
    run.say(2, unit="more")
    run.news()
    run.say(1, 3, ((0, 100), (1, 400)))
    assert run.news() == []  # the other one's may come in a moment
    run.say(2, 3, ((0, 100), (2, 500)), unit="more")
    assert run.news() == [(1, ReleaseSlices(3, (0,))), (2, ReleaseSlices(3, (0,)))]
    assert sorted(run.policy.asked) == [2000, 4000, 5000]
    run.say(1, 3, ((1, 400),))
    run.say(2, 3, ((2, 500),), unit="more")
    assert run.wishes == [("pass", 4, "own")]


def test_a_spout_that_has_nothing_is_not_waited_for_for_long():
    run = Run(spouts=("load", "more"))
    run.say(1)
    run.say(2, unit="more")
    run.news()
    run.say(1, 3, ((0, 200),))
    run.now += 0.11
    run.step()
    assert run.news() == [(1, ReleaseSlices(3, (0,)))]


def test_a_spout_that_died_or_went_on_by_itself_is_forgotten():
    run = Run()
    run.say(1, 3, SLICES)
    run.news()
    run.say(1, 4, ())  # it had waited too long
    assert run.news() == [(1, ReleaseSlices(-1, ()))]
    assert not run.seat.pipelines.busy
    run.say(1, 5, SLICES)
    run.news()
    run.units["load"].subs = {9: None}
    run.step()
    assert not run.seat.pipelines.busy
    run.say(9, 6, ((0, 200),))
    assert run.news() == [(9, ReleaseSlices(-1, ())), (9, ReleaseSlices(6, (0,)))]
    assert run.wishes == []


def test_what_cannot_be_is_refused():
    with pytest.raises(
        UsageError, match="two policies have pipelines=yes: orientstream:pipelines=yes and orient.*seed=2"
    ):
        check_policies(plan(), {"": "orientstream:pipelines=yes", "pass": "orientstream:pipelines=yes,seed=2"})
    with pytest.raises(UsageError, match="no spout collects windows: wrap one, as in MicroBatches"):
        check_policies(plan(wrapped=False), {"": "orientstream:pipelines=yes"})
    check_policies(plan(wrapped=False), {"": "orientstream:pipelines=no"})


def test_it_does_nothing_where_no_policy_has_pipelines():
    judge = SimpleNamespace(names=("pass",), policy=Policy(pipelines=False), policy_name="own")
    idle = PipelineDriver(plan(), {"pass": judge}, lambda *a: None, lambda *a: None)
    idle.status("load", Status(1, 0.0, SubUnitCounts(), micro_batch=MicroBatch(1, ((0, 5),))))
    idle.step({}, 0.0)
    assert idle.pipelines is None
