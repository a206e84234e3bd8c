"""How many sub-units a unit may have, and who gets the free places."""

from __future__ import annotations

import pytest
from run_views import run

from esault import UsageError
from esault.elasticity.limits import above_zero, granted, limits


def view(free, **units):
    return run(10.0, {"s": {}, **units}, dict.fromkeys(units, ("s",)), free=free)


def test_limits_are_those_of_the_plan_or_the_free_places():
    seen = view(3, a={"width": 2, "least": 2, "most": 8}, b={"width": 2, "most": None})
    assert limits(seen.units["a"], seen.free_slots) == (2, 8)
    assert limits(seen.units["b"], seen.free_slots) == (1, 5)


def test_wishes_are_bounded():
    seen = view(100, a={"width": 2, "least": 2, "most": 8}, b={"width": 2})
    assert granted(seen, {"a": 20, "b": 0}) == {"a": 8, "b": 1}


def test_places_that_are_short_go_to_the_poorest():
    # a has 1 of 4, b has 6 of 8: a is at 1/4, 2/4, 3/4 (not below b's 3/4, and a comes first), then b.
    seen = view(4, a={"width": 1}, b={"width": 6})
    assert granted(seen, {"a": 4, "b": 8}) == {"a": 4, "b": 7}
    assert granted(view(2, a={"width": 1}, b={"width": 6}), {"a": 4, "b": 8}) == {"a": 3, "b": 6}


def test_who_shrinks_gives_nothing_yet():
    seen = view(0, a={"width": 1}, b={"width": 6})
    assert granted(seen, {"a": 4, "b": 2}) == {"a": 1, "b": 2}


def test_what_must_be_above_zero_is_named():
    with pytest.raises(UsageError, match="policy 'ds2': period=0 must be above 0"):
        above_zero("ds2", period=0.0)
