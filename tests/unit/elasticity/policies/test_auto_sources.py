"""`auto` judges a unit by its own sources, as much as each brings, whatever others do."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault.elasticity.policies.auto import Auto
from esault.elasticity.policies.auto_flow import Upstream
from esault.sim import Model, Operator, Source, simulate


def jump(t):
    return 400.0 if t >= 20 else 50.0


def grown_at(sources, senders):
    """When `work` has grown behind `big`, which jumps at 20 s, beside other sources."""
    others = [part.name for part in sources]
    parts = [*sources, Source("big", jump), Operator("work", ("big", *senders), 0.01, most=20, keys=[1.0] * 500)]
    if not senders and others:
        parts.append(Operator("small", tuple(others), 0.0005, most=8))
    changes = simulate(Model(parts, slots=64), "auto", seconds=30, seed=1).operators["work"].changes
    return min((change.at for change in changes if change.after > 3), default=float("inf"))


ALONE = 20.6


def test_it_grows_as_soon_as_alone_beside_many_thin_sources():
    """Of twenty that bring ten tuples a second nearly always one brings more than in the window before."""
    assert grown_at([], ()) < ALONE
    assert grown_at([Source(f"s{i}", lambda t: 10.0) for i in range(20)], ()) < ALONE


def test_it_grows_as_soon_with_a_thin_source_of_its_own():
    """Of the rate of one tuple in three seconds hardly anything is sure, but it is hardly any of what comes."""
    assert grown_at([Source("rules", lambda t: 0.3)], ("rules",)) < ALONE


def wishes_beside(backpressured):
    """What `auto` wants of a full bolt whose source has told all; `backpressured`: another source is held back, which cannot tell."""
    policy, found = Auto(), []
    for look in range(1, 41):
        figures = {"arrivals": 100.0, "emitted": 100.0, "processed": 100.0, "rates": True}
        units = {
            "other": {**figures, "backpressured": backpressured},
            "load": {**figures, "lag": 0.0, "lag_before": 0.0},
            "idle": {**figures, "busy": 0.01},
            "full": {**figures, "busy": 0.97, "waiting": 3.0, "waiting_before": 3.0, "most": 1 + 9},
        }
        senders = {"idle": ("other",), "full": ("load",)}
        found.append(widths(policy.decide(run(0.25 * look, units, senders, 0.25))))
    return found


def test_a_source_that_cannot_tell_says_nothing_of_another_ones_units():
    assert wishes_beside(0.9) == wishes_beside(0.0)


def test_what_is_known_of_several_sources_is_as_much_as_each_brings():
    one = Upstream(False, 100.0, 90.0, 1.0, 100.0, 3.0, 0.9)
    other = Upstream(True, 2.0, 1.0, 1.0, 1.0, 4.0, 0.8)
    both = Upstream.together([one, other])
    assert both == Upstream(True, 102.0, 91.0, 2.0, 101.0, 5.0, 0.8)
    assert both.times(0.1).doubt == pytest.approx(both.doubt)
