"""Views for tests of policies."""

from __future__ import annotations

from esault.elasticity.action import Rescale
from esault.elasticity.view import ProbeSample, Sample, UnitView, View
from esault.messages.probe import HostUsage, KeyLoad
from esault.routing.table import OutputTable
from esault.topology.plan import UnitPlan


def plan(least=1, most=16):
    return UnitPlan("count", "bolt", objects="key", min_parallelism=least, max_parallelism=most)


def numbers_of(actions):
    """How many sub-units each action asks for, all of which ask for a number of them."""
    assert all(isinstance(action, Rescale) for action in actions), actions
    return [action.n for action in actions]


def sample(sub_unit, probes=(), age=1000.0, **figures):
    return Sample(sub_unit, age=age, window=figures.pop("window", 0.5), probes=tuple(probes), **figures)


def in_time(number, sent, rate, delay=0.01):
    return ProbeSample(number, sent, sent + delay, rate)


def view(now, samples, least=1, most=16, changing=False, changed_at=None, free=16, units=None, hosts=(), spouts=()):
    table = OutputTable.even([s.sub_unit for s in samples])
    placed = tuple(
        s if s.ranges else Sample(**{**s.__dict__, "ranges": tuple(table.ranges(s.sub_unit))}) for s in samples
    )
    unit = UnitView(
        name="count", plan=plan(least, most), samples=placed, changing=changing, changed_at=changed_at, spouts=spouts
    )
    return View(now, now, {"count": unit, **(units or {})}, tuple(hosts), free, unit=unit)


__all__ = ["HostUsage", "KeyLoad", "in_time", "plan", "sample", "view"]
