"""Metrics of a run, whoever asks for them."""

from __future__ import annotations

from types import SimpleNamespace

from esault.elasticity.objective import LatencyObjective, ObjectiveStatus
from esault.ui.metric_families import _objectives


def test_of_each_objective_how_many_were_slow_and_how_fast_the_budget_is_spent_where_that_is_known():
    one, other = (LatencyObjective.parse(text) for text in ("p99 < 100 ms", "count=p50 < 1 s"))
    objectives = (ObjectiveStatus(one, 10, 2, recent_burn_rate=3.5), ObjectiveStatus(other))
    points = [family.points for family in _objectives(SimpleNamespace(objectives=objectives), {"topology": "words"})]
    labels = [{"topology": "words", "objective": text} for text in ("p99 < 100 ms", "count=p50 < 1 s")]
    assert points == [[(labels[0], 10), (labels[1], 0)], [(labels[0], 2), (labels[1], 0)], [(labels[0], 3.5)]]
