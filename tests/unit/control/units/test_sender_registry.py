"""Who may send to a unit, which table each has, and who of them is leaving."""

from __future__ import annotations

import pytest
from one_unit import SENDER, OneUnit

from esault.control.units.rescale_table import RescaleState
from esault.messages.change import EndRead, Leaving, Left, RangesHeld
from esault.messages.control import (
    Add,
    Added,
    Broken,
    Ended,
    Finish,
    Gone,
    Register,
    Registered,
    SenderSwitched,
    TableFor,
    Unregister,
)

NEWER = 101


def test_a_sender_gets_the_table_once_all_of_ours_know_it():
    one = OneUnit().running()
    one.say(Register("up", (NEWER,)))
    assert [(to, m.senders) for to, m in one.sent(Add)] == [(1, ((NEWER, 2),)), (2, ((NEWER, 2),))]
    one.say(Added(1, (NEWER,)))
    assert one.sent(Registered) == []
    one.say(Added(2, (NEWER,)))
    ((to, answer),) = one.sent(Registered)
    assert (to, answer.incarnation, answer.table.version) == (("unit", "up"), NEWER, 1)
    assert answer.table.peers == {1: ("data 1", "express 1", 2), 2: ("data 2", "express 2", 2)}


def test_a_sender_is_not_waited_for_by_one_of_ours_that_dies():
    one = OneUnit().running()
    one.say(Register("up", (NEWER,)), Added(1, (NEWER,)))
    one.unit.died(2, "killed", one.now)
    assert len(one.sent(Registered)) == 1


def test_a_change_is_not_published_while_a_sender_is_made_known():
    one = OneUnit().running()
    one.say(Register("up", (NEWER,)))
    new = one.reach(RescaleState.STARTING)
    one.newcomer(new)
    one.say(Added(new, (NEWER,)))
    one.say(RangesHeld(new, one.unit.change.version))
    assert one.unit.rescaling.state is RescaleState.HOLDING
    one.say(Added(1, (NEWER,)), Added(2, (NEWER,)))
    assert "check" in one.told()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is RescaleState.MOVING


def test_settled_is_said_once_every_sender_has_the_table_after_a_death():
    one = OneUnit().running()
    one.unit.died(2, "killed", one.now)
    one.newcomer(3)
    ((to, sent),) = one.sent(TableFor)
    assert (to, sent.incarnation, set(sent.table.peers)) == (("unit", "up"), SENDER, {1, 3})
    assert one.unit.unsettled
    assert "settled" not in one.told()
    one.switched()
    assert one.told().count("settled") == 1
    assert not one.unit.unsettled


def test_an_older_version_that_a_sender_confirms_late_says_nothing():
    one = OneUnit().running()
    one.unit.died(2, "killed", one.now)
    one.newcomer(3)
    one.say(SenderSwitched(SENDER, one.unit.table.version - 1))
    assert one.unit.senders.switching


def test_a_broken_channel_is_replaced_by_one_with_another_number_and_version():
    one = OneUnit().running()
    version = one.unit.table.version
    one.say(Broken(1, SENDER, "a gap"))
    assert one.unit.senders.known[SENDER] == ("up", 2)
    assert one.unit.table.version == version + 1
    one.say(Added(1, (SENDER,)), Added(2, (SENDER,)))
    ((_, answer),) = one.sent(Registered)
    assert answer.table.peers[1][2] == 2


@pytest.mark.parametrize("who", [Broken(9, SENDER, ""), Broken(1, 9, "")])
def test_a_gap_of_somebody_who_is_gone_is_nothing(who):
    one = OneUnit().running()
    one.say(who)
    assert one.sent() == []


def test_a_dead_sender_counts_as_ended_and_its_successor_is_waited_for():
    one = OneUnit().running()
    one.say(Unregister(SENDER))
    assert [(to, m) for to, m in one.sent(Gone)] == [(to, Gone(SENDER, succeeded=True)) for to in (1, 2)]
    assert one.unit.senders.expecting
    one.say(Ended(1), Ended(2))
    assert not one.unit.finishing
    one.say(Register("up", (NEWER,)), Added(1, (NEWER,)), Added(2, (NEWER,)))
    assert not one.unit.senders.expecting
    one.say(Ended(1), Ended(2))
    assert one.unit.finishing
    assert [to for to, _ in one.sent(Finish)] == [1, 2]


def test_a_newcomer_counts_a_sender_that_died_at_its_end_as_ended():
    one = OneUnit().running()
    one.say(Unregister(SENDER, last=True))
    one.unit.died(2, "killed", one.now)
    one.sent()
    one.built(3)
    sent = one.sent()
    assert (3, Add(((SENDER, 1),))) in sent
    assert (3, Gone(SENDER, last=True)) in sent


def test_a_sender_may_leave_when_all_of_ours_have_read_its_end():
    one = OneUnit().running()
    one.say(EndRead(1, SENDER), Leaving(SENDER))
    assert one.sent(Left) == []
    one.say(EndRead(2, SENDER))
    assert one.sent(Left) == [(("unit", "up"), Left("count", SENDER))]
    assert one.unit.senders.known == {}


def test_a_sender_may_leave_when_the_last_that_had_not_read_its_end_is_gone():
    one = OneUnit().running()
    new = one.reach(RescaleState.MOVING)
    one.move_on()
    one.unit.check(one.now)
    one.say(EndRead(1, SENDER), EndRead(2, SENDER), Leaving(SENDER))
    assert one.sent(Left) == []
    one.unit.died(new, "killed", one.now)
    assert one.sent(Left) == [(("unit", "up"), Left("count", SENDER))]


def test_the_table_names_those_that_leave():
    one = OneUnit().running()
    first, second = one.unit.table.owners()
    one.unit.merge(second, one.now)
    one.say(RangesHeld(first, one.unit.change.version))
    assert one.table_for_sender().left == (second,)
