from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.run.going_back import GoingBack
from esault.messages.control import Kill


def driver(phase, late=False, built=(), unforked=(), completed=None, restored=()):
    subs = {i: SimpleNamespace(incarnation=i, built=i in built or None) for i in (1, 2, 3)}
    return SimpleNamespace(
        phase=phase,
        completed=completed,
        restores=SimpleNamespace(all=list(restored), late=lambda now: late),
        unforked=SimpleNamespace(why=dict.fromkeys(unforked, "no memory")),
        units={"count": SimpleNamespace(subs=subs)},
        outbox=deque(),
    )


@pytest.mark.parametrize(
    ("phase", "about", "exactly", "back"),
    [
        ("running", {}, True, True),
        ("running", {}, False, False),
        ("building", {}, True, False),
        ("building", {"completed": object()}, True, True),
        ("building", {"restored": [object()]}, True, True),
    ],
)
def test_a_death_has_all_go_back_once_something_may_have_been_processed(phase, about, exactly, back):
    assert GoingBack(driver(phase, **about), exactly).after_death is back


def test_what_is_not_ready_in_time_is_killed_but_what_could_not_be_forked():
    it = driver("building", late=True, built=[1], unforked=[3])
    GoingBack(it, True).tick(5.0)
    assert list(it.outbox) == [("keeper", Kill(2))]


@pytest.mark.parametrize(("phase", "late"), [("building", False), ("running", True)])
def test_none_is_killed_in_time_or_when_all_run(phase, late):
    it = driver(phase, late)
    GoingBack(it, True).tick(5.0)
    assert not it.outbox
