"""A unit ends when all of its sub-units have; one whose ranges are others' ends alone."""

from __future__ import annotations

import pytest
from one_unit import SENDER, OneUnit, status

from esault.messages.change import Leaving, Left, RangesHeld
from esault.messages.control import Added, Ended, Finish, Finished, Release, Stop, Stopped
from esault.topology.plan import Outlet, SinkPlan


def leaving(**options):
    """A unit whose second sub-unit has lost its ranges; the change is over."""
    one = OneUnit(**options).running()
    first, second = one.unit.table.owners()
    one.unit.merge(second, one.now)
    one.say(RangesHeld(first, one.unit.change.version))
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.change is None
    one.sent()
    one.told()
    return one, second


def test_it_finishes_when_the_last_has_ended():
    one = OneUnit().running()
    one.say(Ended(1))
    assert not one.unit.finishing
    one.say(Ended(2))
    assert one.sent() == [(1, Finish()), (2, Finish())]
    one.say(Finished(1), Finished(2))
    assert one.told() == ["finished"]


def test_one_that_learns_of_a_new_sender_has_not_ended():
    one = OneUnit().running()
    one.say(Ended(1), Added(1, (SENDER,)), Ended(2))
    assert not one.unit.finishing


def test_a_death_in_the_end_is_made_up_for_by_nobody():
    one = OneUnit().running()
    one.say(Ended(1), Ended(2), Finished(1))
    one.unit.died(2, "killed", one.now)
    assert set(one.unit.subs) == {1}
    assert "finished" in one.told()


def test_who_leaves_finishes_says_so_to_the_targets_and_stops():
    one, old = leaving(targets=("a", "b"))
    assert one.unit.changing
    one.say(Ended(old))
    assert one.sent() == [(old, Finish(leaving=True))]
    one.say(Finished(old))
    assert one.sent() == [(("unit", "a"), Leaving(old)), (("unit", "b"), Leaving(old))]
    one.say(Left("a", old))
    assert one.sent() == []
    one.say(Left("b", old))
    assert one.sent() == [(old, Stop())]
    one.say(Stopped(old, status(old)))
    assert one.sent() == [("keeper", Release(old))]
    assert old not in one.unit.subs
    assert not one.unit.changing


def test_who_leaves_with_rows_in_a_sink_waits_for_a_checkpoint():
    plan = {"streams": {"": Outlet(sinks=(SinkPlan("table", object()),))}}
    one, old = leaving(**plan)
    one.unit.endings.exactly = True
    one.say(Ended(old))
    assert one.told() == [] and one.unit.state.coming_or_going
    one.say(Finished(old))
    assert one.unit.wants_checkpoint
    assert one.sent(Stop) == []
    # A checkpoint may not begin before newcomers have acked, who are told whom to when nobody comes or goes.
    assert one.told() == ["rescaled"] and not one.unit.state.coming_or_going
    one.unit.checkpointed({old})
    assert one.sent(Stop) == [(old, Stop())]
    assert not one.unit.wants_checkpoint
    assert one.told() == [] and one.unit.state.coming_or_going
    one.say(Stopped(old, status(old)))
    assert one.told() == ["rescaled"] and not one.unit.state.coming_or_going


def test_who_dies_while_it_leaves_has_no_successor():
    one, old = leaving()
    one.unit.died(old, "killed", one.now)
    assert old not in one.unit.subs
    assert not one.unit.changing
    assert "settled" in one.told()  # what it had not handed over is sent again
    one.check_owners()


@pytest.mark.parametrize("at_once", [False, True])
def test_all_are_told_to_stop_and_it_is_known_when_they_have(at_once):
    one = OneUnit().running()
    one.unit.stop(at_once)
    assert one.sent() == [(1, Stop(at_once)), (2, Stop(at_once))]
    one.say(Stopped(1, status(1)))
    assert not one.unit.all_stopped
    one.say(Stopped(2, status(2)))
    assert one.unit.all_stopped
