"""Shares of processor time in a view, from what processes report."""

from types import SimpleNamespace

import pytest

from esault.elasticity.sampler import Sampler
from esault.messages.probe import Usage
from esault.messages.status import Status, SubUnitCounts
from esault.topology.plan import UnitPlan


def sampled(*usages, at_start=None):
    """The sample of a sub-unit that reported these twice a second."""
    sampler = Sampler()
    for i, usage in enumerate(usages):
        began = at_start if i == 0 else None
        sampler.status(Status(7, 100.0 + i / 2, SubUnitCounts(), usage=usage, usage_at_start=began))
    unit = SimpleNamespace(
        name="work",
        plan=UnitPlan("work", "spout"),
        subs={7: SimpleNamespace(started_at=90.0)},
        table=None,
        keyed=False,
        changing=False,
        changes=[],
        died_at=None,
        width=1,
    )
    unit.all_replicas = [unit]
    return sampler.unit(unit, (), 102.0, 1.0, True).samples[0]


def test_processors_used_and_waited_for_are_shares_of_the_time():
    sample = sampled(Usage(3.0, 1.0), Usage(3.1, 1.4), Usage(3.2, 1.8))
    assert sample.cpu == pytest.approx(0.2)
    assert sample.cpu_wait == pytest.approx(0.8)


def test_unknown_waiting_stays_unknown():
    sample = sampled(Usage(3.0), Usage(3.5))
    assert sample.cpu == pytest.approx(1.0)
    assert sample.cpu_wait is None


def test_one_report_tells_a_share_of_the_time_since_the_start():
    sample = sampled(Usage(3.0, 1.0, 5_000), at_start=(99.8, Usage(2.9, 0.9, 4_000)))
    assert sample.cpu == pytest.approx(0.5)
    assert sample.cpu_wait == pytest.approx(0.5)
    assert sample.memory == 5_000


def test_one_report_tells_no_share():
    sample = sampled(Usage(3.0, 1.0, 5_000))
    assert (sample.cpu, sample.cpu_wait, sample.memory) == (None, None, 5_000)


def test_a_first_report_that_comes_late_tells_no_share():
    """Such as that of a process whose first tuple took longer than samples are kept."""
    sample = sampled(Usage(9.0, 1.0, 5_000), at_start=(93.0, Usage(2.9, 0.9, 4_000)))
    assert (sample.cpu, sample.cpu_wait, sample.memory) == (None, None, 5_000)
