"""Policies by name."""

from __future__ import annotations

import pytest

from esault import Bolt, Spout, Topology, UsageError, by_key, single
from esault.elasticity.policies.esault import ESault
from esault.elasticity.policies.probe import Probe
from esault.elasticity.policy import POLICIES, make, parameters
from esault.elasticity.scaling import check_policies


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Nothing(Spout):
    def read(self, limit):
        return []


def plan():
    t = Topology("t")
    count = t.spout("lines", Nothing()).bolt("count", Pass, grouping=by_key())
    count.bolt("all", Pass, grouping=single())
    return t.plan()


def test_parameters_are_converted():
    policy = make("esault:max_latency=0.3,overload_time=10,strict=yes")
    assert isinstance(policy, ESault)
    assert (policy.max_latency, policy.overload_time, policy.strict) == (0.3, 10, True)
    assert isinstance(make("probe"), Probe)
    assert make("none") is None


def test_every_parameter_of_the_paper_is_there():
    names = set(parameters("esault"))
    assert names >= {
        "max_latency",
        "probe_period",
        "overload_time",
        "overload_factor",
        "underload_time",
        "underload_factor",
        "low_watermark",
    }


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("prob", "there is no policy 'prob'; there are: auto, probe, esault, "),
        ("probe:speed=1", "no parameter 'speed=1'; write NAME=VALUE with one of: target"),
        ("esault:overload_time=many", "overload_time='many' is no int"),
        ("esault:max_latency=-1", "must be 0 or more"),
        ("esault:strict=maybe", "is no bool"),
        ("probe:target", "no parameter 'target'"),
    ],
)
def test_bad_specs_are_refused_with_what_is_known(spec, says):
    with pytest.raises(UsageError, match="policy") as caught:
        make(spec)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("policies", "says"),
    [
        ({"cuont": "probe"}, "there is no unit 'cuont'; did you mean 'count'? There are: lines, count, all"),
        ({"lines": "probe"}, "is a spout"),
        ({"all": "esault"}, "grouping single"),
    ],
)
def test_units_that_cannot_be_scaled_are_named(policies, says):
    with pytest.raises(UsageError) as caught:
        check_policies(plan(), policies)
    assert says in str(caught.value)


def test_a_policy_that_does_nothing_is_fine_anywhere():
    check_policies(plan(), {"": "probe", "lines": "none", "all": "none"})


def test_each_policy_takes_its_defaults():
    for name in POLICIES.own:
        assert make(name) is not None


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("auto:busy=0", "busy=0 must be above 0"),
        ("auto:busy=80", "busy=80 is a share, at most 1"),
        ("probe:target=0", "target=0 must be above 0"),
        ("probe:high=1.5", "high=1.5 is a share, at most 1"),
        ("probe:half_life=0", "half_life=0 must be above 0"),
        ("probe:catch_up=0", "catch_up=0 must be above 0"),
    ],
)
def test_what_a_policy_could_not_reckon_with_is_refused(spec, says):
    with pytest.raises(UsageError, match=says):
        make(spec)
