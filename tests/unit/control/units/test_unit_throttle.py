"""A throttle is shared by the sub-units that work, however many they are by then."""

from __future__ import annotations

import math

import pytest
from one_unit import OneUnit

from esault import UsageError
from esault.control.units.rescale_table import RescaleState
from esault.messages.change import RangesHeld
from esault.messages.control import Throttle


def test_each_has_its_share_and_is_told_when_it_is_lifted():
    one = OneUnit().running()
    one.unit.throttle(100, 5, one.now)
    assert one.sent() == [(1, Throttle(50.0, 5.0)), (2, Throttle(50.0, 5.0))]
    one.unit.unthrottle(one.now + 1)
    assert one.sent() == [(1, Throttle(0.0, 0.0)), (2, Throttle(0.0, 0.0))]
    one.unit.unthrottle(one.now + 2)
    assert one.sent() == []


def test_a_new_owner_has_a_share_once_the_table_is_published():
    one = OneUnit().running()
    one.unit.throttle(90, 5, one.now)
    new = one.reach(RescaleState.HOLDING)
    assert {m.rate for _, m in one.sent(Throttle)} == {45.0}
    one.now += 2
    one.say(RangesHeld(new, one.unit.change.version))
    assert one.sent(Throttle) == [(i, Throttle(30.0, 3.0)) for i in (1, 2, new)]


def test_a_throttle_that_is_over_is_not_shared():
    one = OneUnit().running()
    one.unit.throttle(90, 5, one.now)
    one.sent()
    one.now += 5
    one.unit.died(2, "killed", one.now)
    one.newcomer(3)
    assert one.sent(Throttle) == []


@pytest.mark.parametrize("rate", [0, -1, math.inf, math.nan, True, "9"])
def test_nonsense_is_refused(rate):
    one = OneUnit().running()
    with pytest.raises(UsageError, match="its rate is a number of tuples a second above 0"):
        one.unit.throttle(rate, 1, one.now)
    with pytest.raises(UsageError, match="its time is a number of seconds above 0"):
        one.unit.throttle(1, rate, one.now)
    assert one.sent() == []


def test_the_next_life_goes_on_with_it():
    one = OneUnit().running()
    one.unit.throttle(100, 5, one.now)
    after = one.unit.successor(one.now + 1)
    after.throttling.share(one.now + 1)
    assert not after.outbox
    after.start(one.now + 1)
    for record in after.subs.values():
        after.lives.begin(record, one.now + 1)
    assert [m.rate for _, m in after.outbox if isinstance(m, Throttle)] == [100.0, 50.0, 50.0]
