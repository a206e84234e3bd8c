"""Draining hosts: whose sub-units are moved away, and whose stay."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.placement.placement import Cluster, PlacementRules
from esault.control.run.evacuation import Evacuation


@pytest.mark.parametrize("offers", [(), ("gpu",)])
def test_who_needs_what_only_the_draining_host_offers_stays_and_is_told_of_once(offers):
    cluster = Cluster(PlacementRules(needs={"count": ("gpu",)}))
    cluster.join("a", 4, ("gpu",))
    cluster.join("b", 4, offers)
    cluster.drain("a")
    moved = []
    unit = SimpleNamespace(plan=SimpleNamespace(kind="bolt"), subs={7: None}, table=SimpleNamespace(owners=lambda: [7]))
    driver = SimpleNamespace(
        phase="running",
        draining=False,
        busy=False,
        units={"count": unit},
        plan=SimpleNamespace(units={}),
        places=SimpleNamespace(hosts={7: "a"}),
        commands=SimpleNamespace(move=lambda name, incarnation, now: moved.append(incarnation)),
        notices=deque(),
    )
    evacuation = Evacuation()
    for second in range(3):
        evacuation.step(driver, cluster, float(second))
    if offers:
        assert (moved, list(driver.notices)) == ([7, 7, 7], [])
    else:
        told = ["count/7 stays on its draining host: no other offers what 'count' needs"]
        assert (moved, list(driver.notices)) == ([], told)
