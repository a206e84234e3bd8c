"""Kinds of faults that befall a whole host, and the ways between hosts."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator

import psutil

from bench.faults.kind import DEATH, Kind
from bench.kit.cluster import Cluster
from bench.kit.victim import Lost, Victim

__all__ = ["HOSTS"]

#: seconds within which a host is there again
BACK = 60.0


@contextlib.contextmanager
def _some(victim: Victim, order: random.Random) -> Iterator[tuple[Cluster, str]]:
    """One host, as soon as all are there: none is to be the last one."""
    cluster = victim.cluster
    assert cluster is not None
    victim.until(lambda now: len(now.get("hosts", {})) == len(cluster.nodes), BACK)
    victim.befallen = time.monotonic()
    yield cluster, order.choice(sorted(cluster.nodes))


def _kill_host(victim: Victim, order: random.Random, hold: float) -> str:
    """All processes of a host die at once, and its node is started again."""
    with _some(victim, order) as (cluster, name):
        processes = cluster.processes(name)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        cluster.nodes[name].wait()
        psutil.wait_procs(processes, 5)
        time.sleep(order.uniform(0.0, 1.0))
        cluster.start(name)
    return DEATH


def _freeze_host(victim: Victim, order: random.Random, hold: float) -> str:
    with _some(victim, order) as (cluster, name):
        processes = cluster.processes(name)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.suspend()
        time.sleep(order.choice([0.5, 1.5, 2.5, 4.0]))
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.resume()
    return DEATH


def _cut_host(victim: Victim, order: random.Random, hold: float) -> str:
    with _some(victim, order) as (cluster, name):
        if not cluster.namespaces:
            raise Lost("no namespaces can be made here")
        cluster.cut(name)
        time.sleep(order.choice([0.5, 1.5, 2.5, 4.0]))
        cluster.plug(name)
    return DEATH


def _one_way(victim: Victim, order: random.Random, hold: float) -> str:
    """Lose what a host sends to the driver or to another host; what comes the other way arrives; or the other way round."""
    with _some(victim, order) as (cluster, name):
        if not cluster.namespaces:
            raise Lost("no namespaces can be made here")
        ends = [name, order.choice(["driver", *(each for each in cluster.nodes if each != name)])]
        order.shuffle(ends)
        deaf, other = ends
        cluster.deafen(deaf, other)
        time.sleep(order.choice([0.5, 1.5, 2.5, 4.0]))
        cluster.deafen(deaf, other, deaf=False)
    return DEATH


HOSTS = (
    Kind("kill a host", _kill_host, 6, False),
    Kind("freeze a host", _freeze_host, 6, False),
    Kind("cut a host off", _cut_host, 6, False),
    Kind("cut a way in one direction", _one_way, 6, False),
)
