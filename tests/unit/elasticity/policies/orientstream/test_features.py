"""The state of a run in one window, for learners: what each unit takes, what was offered, and the four targets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_views import run

from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.elasticity.policies.orientstream.features import (
    BLIND,
    FEWEST,
    MOST_SERVED,
    NEWEST,
    Remembered,
    features,
    scales,
    window_state,
)
from esault.messages.probe import HostUsage

CHAIN = {"read": (), "split": ("read",), "count": ("split",)}


def chain(**changes):
    """10 s: 100 lines/s, ten words of each, 1 ms for a line and 0.5 ms for a word."""
    units = {
        "read": {"arrivals": 1000, "processed": 1000, "lag_before": 0, "lag": 0},
        "split": {"arrivals": 1000, "processed": 1000, "busy": 1.0, "width": 2},
        "count": {"arrivals": 10_000, "processed": 10_000, "busy": 5.0, "least": 2, "most": 8},
    }
    for name, figures in changes.items():
        units[name] = {**units[name], **figures}
    return run(10.0, units, CHAIN, free=5)


def test_a_window_tells_visits_service_and_what_was_offered():
    state = window_state(chain(), Remembered())
    assert state.rate == 100.0
    split, count = state.units["split"], state.units["count"]
    assert (split.visits, split.service, split.width) == (1.0, 0.001, 2)
    assert (count.visits, count.service, count.least, count.most) == (10.0, 0.0005, 2, 8)
    assert (state.free, state.slots) == (5, 8)
    assert state.known
    assert state.demand("count", 200.0) == pytest.approx(1.0)
    assert state.configuration == Configuration((("split", 2), ("count", 1)))
    assert state.measured["cpu"] == pytest.approx(0.6 / 8)
    assert state.measured["memory"] == pytest.approx(3 / 8)
    assert state.measured["throughput"] == 1.0


def test_what_a_held_back_source_could_not_read_is_offered_too():
    assert window_state(chain(read={"lag_before": 0, "lag": 500}), Remembered()).rate == 150.0
    assert window_state(chain(read={"lag_before": 500, "lag": 0}), Remembered()).rate == 100.0  # it catches up
    blind = {"lag_before": None, "lag": None, "backpressured": 0.9}
    assert window_state(chain(read=blind), Remembered()).rate == 100.0 * BLIND


def test_there_is_no_state_before_all_have_a_window_or_where_nothing_may_be_changed():
    assert window_state(run(10.0, {"read": {}}, {}, managed=()), Remembered()) is None


def test_means_follow_the_newest_and_few_tuples_wait_for_more():
    remembered = Remembered()
    window_state(chain(), remembered)
    window_state(chain(split={"busy": 3.0}), remembered)
    assert remembered.service["split"] == pytest.approx(0.001 + NEWEST * 0.002)
    few = chain(split={"arrivals": 5, "processed": FEWEST - 1, "busy": 9.0}, read={"processed": FEWEST - 1})
    window_state(few, remembered)
    assert remembered.service["split"] == pytest.approx(0.0016)
    assert remembered.ratio["split"] == 1.0
    window_state(chain(split={"processed": 1, "busy": 1.0}), remembered)  # ten together, of a second each
    assert remembered.service["split"] == pytest.approx(0.0016 + NEWEST * (1.0 - 0.0016))


def test_latency_is_summed_along_the_way():
    view = chain(
        read={"lag": 50, "lag_before": 0},
        split={"samples": [{"latency": 0.2}, {"latency": 0.4}]},
        count={"waiting_before": 0, "waiting": 2000},
    )
    state = window_state(view, Remembered())
    # 50 due at 100/s; the mean of what is told; 1,000 on average at 1,000/s, and the service of one
    assert state.measured["latency"] == pytest.approx(0.5 + 0.3 + 1.0005)


def test_a_unit_that_does_nothing_while_tuples_wait_is_as_late_as_the_window_is_long():
    still = {"arrivals": 0, "processed": 0, "busy": 0.0, "waiting_before": 3, "waiting": 3}
    assert window_state(chain(count=still), Remembered()).measured["latency"] == pytest.approx(10.001)


@pytest.mark.parametrize(("total", "taken", "share"), [(1000, 50, 0.15), (0, 50, 3 / 8), (1000, 0, 3 / 8)])
def test_memory_is_what_sub_units_take_of_all_hosts_where_it_is_measured(total, taken, share):
    samples = {"samples": [{"memory": taken}] * 2}
    view = chain(split=samples, count={"samples": [{"memory": taken}]})
    view = replace(view, hosts=tuple(HostUsage(name, cores=4, memory=0, memory_total=total // 2) for name in "ab"))
    assert window_state(view, Remembered()).measured["memory"] == pytest.approx(share)


@pytest.mark.parametrize(("lag", "read", "late"), [(50, 1000, 0.5), (0, 0, 0.0), (7, 0, 10.0), (None, 1000, 0.0)])
def test_a_source_is_as_late_as_what_is_due_takes_it(lag, read, late):
    view = run(
        10.0, {"read": {"arrivals": read, "processed": read, "lag_before": 0, "lag": lag}}, {}, managed=("read",)
    )
    assert window_state(view, Remembered()).measured["latency"] == late


def test_a_unit_that_does_nothing_where_nothing_waits_is_not_late():
    still = {"arrivals": 0, "processed": 0, "busy": 0.0}
    assert window_state(chain(count=still), Remembered()).measured["latency"] == pytest.approx(0.001)


def test_too_few_tuples_say_nothing_of_what_is_served():
    few = {"read": {"arrivals": 9, "processed": 9}, "split": {"arrivals": 9, "processed": 1}}
    none = {"arrivals": 0, "processed": 0}
    remembered = Remembered(ratio={"count": 0.1})
    assert window_state(chain(**few, count=none), remembered).measured["throughput"] == 1.0
    ten = {"read": {"arrivals": 10, "processed": 10}, "split": {"arrivals": 10, "processed": 1}}
    assert window_state(chain(**ten, count=none), remembered).measured["throughput"] == 0.1


def test_served_is_the_smallest_share_and_beyond_a_bound_a_backlog_is_worked_off():
    assert window_state(chain(count={"processed": 4000}), Remembered()).measured["throughput"] == pytest.approx(0.4)
    most = chain(split={"processed": 5000}, count={"arrivals": 10_000, "processed": 90_000})
    assert window_state(most, Remembered()).measured["throughput"] == MOST_SERVED


def test_features_are_of_the_configuration_and_not_of_the_one_in_force():
    state = window_state(chain(), Remembered())
    wide = Configuration((("split", 1), ("count", 4)))
    assert features(state, wide, 200.0, {"split": 10.0, "count": 400.0}) == pytest.approx(
        {
            "rate": 200.0,
            "width split": 1,
            "load split": 0.2,
            "wait split": 0.01,
            "width count": 4,
            "load count": 0.25,
            "wait count": 0.05,
        }
    )
    assert scales(state, wide, 200.0) == pytest.approx(
        {"cpu": 1.2 / 8, "memory": 5 / 8, "latency": 1.0, "throughput": 1.0}
    )
    assert scales(state, wide, 0.0)["cpu"] == pytest.approx(0.01 / 8)
