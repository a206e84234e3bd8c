from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from hypothesis import given
from hypothesis import strategies as st

from bench.policies.migration.live.cores import Cores
from bench.policies.migration.live.topology import due_times, service
from bench.policies.migration.model import CORES, COST, PLACES, rate


@given(
    cores=st.integers(1, 4),
    jobs=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10)), min_size=1, max_size=40),
)
def test_cores_serve_first_come_first_served_and_never_more_at_a_time_than_there_are(tmp_path_factory, cores, jobs):
    path = str(tmp_path_factory.mktemp("cores") / "host")
    sharing = [Cores(path, cores) for _ in range(2)]
    jobs.sort(key=lambda job: job[0])
    busy, free = [], [0] * cores
    for i, (now, seconds) in enumerate(jobs):
        end = sharing[i % 2].book(float(now), float(seconds))
        free.sort()
        free[0] = max(free[0], now) + seconds
        assert end == free[0]
        busy.append((end - seconds, end))
    for each in sharing:
        each.close()
    assert all(sum(a <= start < b for a, b in busy) <= cores for start, _ in busy)


def test_events_are_due_at_the_rate_of_the_moment():
    due = due_times(4, speed=6.0, scale=0.1, minutes=10)
    assert due == sorted(due)
    offered = sum(0.1 * rate(k + 0.5, 4) for k in range(600)) / 6
    assert len(due) == pytest.approx(offered, abs=1)
    high = sum(5.0 <= t < 8.0 for t in due), sum(15.0 <= t < 18.0 for t in due)  # minutes 1 and 2
    assert high == pytest.approx((3 * 55, 3 * 5), abs=1)


def test_a_host_can_do_at_its_rates_what_a_node_of_the_model_can():
    assert 1 / service(0.1) == pytest.approx(0.1 * CORES / COST)
    # the node with most: 2900 events a second of 2326
    busiest = sum(0.1 * rate(90, w) for (w, _), node in PLACES.items() if node == 6) * service(0.1)
    assert busiest == pytest.approx(2900 * 0.00172 / 4)
