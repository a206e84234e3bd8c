"""How long a run waits for the executors of a cluster; no Spark in here, and time is passed in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from esault.errors import UsageError
from esault.spark.executors import cores

_IDS = itertools.count()


class Cluster:
    """A session on a cluster whose executors, of a core each, come at these seconds."""

    def __init__(self, *come: float, conf: dict[str, str] | None = None) -> None:
        self.come, self.now = list(come), 0.0
        self.master, self.applicationId = "spark://host:7077", f"app-{next(_IDS)}"
        self.sparkContext = self._jsc = self
        self.statusStore = lambda: self
        self._conf = conf or {}

    def sc(self) -> Cluster:
        return self

    def getConf(self) -> dict[str, str]:
        return self._conf

    def executorList(self, _: bool) -> Any:
        there = sum(at <= self.now for at in self.come)
        found = [SimpleNamespace(id=lambda: "driver", totalCores=lambda: 0)]
        found += [SimpleNamespace(id=lambda: "1", totalCores=lambda: 1)] * there
        return SimpleNamespace(size=lambda: len(found), apply=found.__getitem__)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def cores(self) -> int:
        return cores(self, lambda: self.now, self.wait)


def waited(cluster: Cluster) -> Iterator[tuple[int, int]]:
    """Of one topology after the other in the session: its cores, and the seconds that it waited."""
    while True:
        before = cluster.now
        found = cluster.cores()
        yield found, round(cluster.now - before)


def test_the_first_topology_waits_for_more_and_the_next_one_does_not() -> None:
    topologies = waited(Cluster(1, 2, 3))
    assert [next(topologies), next(topologies), next(topologies)] == [(3, 5), (3, 0), (3, 0)]


def test_the_cores_that_are_asked_for_are_waited_for_no_longer_than_they_take() -> None:
    topologies = waited(Cluster(1, 2, 3, conf={"spark.cores.max": "2"}))
    assert next(topologies) == (2, 2)


def test_a_topology_waits_for_executors_that_were_lost_meanwhile() -> None:
    cluster = Cluster(0, 0, 0)
    topologies = waited(cluster)
    assert next(topologies) == (3, 2)
    cluster.come[1:] = [cluster.now + 1, cluster.now + 300]  # one comes back, the other does not
    assert [next(topologies), next(topologies)] == [(2, 3), (2, 0)]


def test_those_that_have_come_in_addition_are_used_at_once() -> None:
    cluster = Cluster(0)
    topologies = waited(cluster)
    assert next(topologies) == (1, 2)
    cluster.come.append(cluster.now)
    assert next(topologies) == (2, 0)


def test_a_cluster_that_gives_none_is_told_of() -> None:
    with pytest.raises(UsageError, match="has given no executor for 120 s"):
        Cluster().cores()
