"""The migration paper's workers on six hosts, for some seconds: copies are moved between hosts while events come, and nothing is lost."""

from __future__ import annotations

import depth
import pytest

pytest.importorskip("numpy")

from bench.kit.cluster import Cluster
from bench.policies.migration.live.policy import first_host
from bench.policies.migration.live.run import Shape, live
from bench.policies.migration.model import NODES
from bench.policies.migration.scenarios import SCENARIOS

RANDOM = 10


@pytest.mark.slow
@depth.deep("copies move in test_replicas.py, and sub-units from host to host in test_hosts_come_and_go.py")
def test_copies_go_from_host_to_host_under_load_and_have_each_event_once(tmp_path):
    with Cluster(tmp_path, 6, [f"vm{n}" for n in NODES]) as cluster:
        # `live` itself fails where a copy had an event twice or not at all.
        run = live(cluster, tmp_path / "run", SCENARIOS[RANDOM], Shape(speed=12.0, workers=2, minutes=1.0))
    assert run["offered"] > 100
    assert run["migrations"] >= 1
    assert (run["replayed"], run["deaths"]) == (0, 0)
    hosts = {path.name for path in (tmp_path / "run").glob("cores-*")}
    assert hosts >= {f"cores-{first_host(f'worker-{w}', k)}" for w in (1, 2) for k in (0, 1)}
    assert len(hosts) > 3  # worker 1 begins on 6 and 7, worker 2 on 7 and 8
