"""What is refused of a plan before anything starts: more sub-units than slots."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.runtime.session.plan_check import check_plan
from esault.sources import Items


class Count(Bolt):
    def process(self, key, value):
        pass


def plan():
    t = Topology("words")
    t.spout("lines", Items([])).bolt("count", Count, by_key(), parallelism=3).bolt("sum", Count, by_key())
    return t.plan()


def test_too_few_slots_are_told_with_the_widths_that_need_them():
    check_plan(plan(), 5, {})
    said = r"words needs 14 slots to start and there are 5; say --slots 14, or start with less \(--parallelism\) than "
    with pytest.raises(UsageError, match=f"{said}lines 1, count 12, sum 1$"):  # as a checkpoint may have it
        check_plan(plan(), 5, {"count": 12})


def test_the_remedy_of_a_cluster_is_its_own():
    with pytest.raises(
        UsageError, match="there are 2; start more nodes, or start with less .* lines 1, count 3, sum 1"
    ):
        check_plan(plan(), 2, {}, remedy="start more nodes")
