"""The share of what its senders emit that comes to a unit, where function steps between the two leave tuples out."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault.elasticity.policies.auto import Auto


def wishes(share, seconds=15.0, occupancy=0.0):
    """What `auto` wants of a unit of 10 ms; of 2 000 tuples a second that are sent to it this share comes."""
    policy, found = Auto(), []
    for look in range(1, round(4 * seconds)):
        rate = 2000.0 * share
        work = {"arrivals": rate, "processed": rate, "busy": 0.01 * rate, "rates": True, "most": 16}
        units = {
            "in": {"arrivals": 2000.0, "emitted": 2000.0, "rates": True, "lag": 0.0, "lag_before": 0.0},
            "work": {**work, "samples": [{"occupancy": occupancy}]},
        }
        found += widths(policy.decide(run(0.25 * look, units, {"work": ("in",)}, 0.25))).values()
    return found


@pytest.mark.parametrize("share", [0.001, 0.01, 0.03])
def test_a_unit_behind_a_filter_is_not_sized_for_what_the_filter_leaves_out(share):
    assert wishes(share) == []


def test_where_tuples_wait_to_be_read_one_measurement_is_not_believed():
    assert wishes(0.01, seconds=4.0, occupancy=1.0)
