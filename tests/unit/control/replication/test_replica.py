"""Two active replicas of one unit: one that lost a sub-unit is restored by the other, before anybody depends on it."""

from __future__ import annotations

from itertools import count

import pytest
from one_unit import SENDER, OneUnit, status, unit_plan

from esault import UsageError
from esault.control.replication.group_requests import GroupRequests
from esault.control.replication.replica import Replica
from esault.control.replication.replicas import down
from esault.control.units.rescale_table import RescaleState
from esault.messages.change import HoldRanges, RangesHeld, StateInstalled
from esault.messages.control import Added, Broken, Kill, Register, TableFor, Unregister
from esault.messages.replicas import Copy, CopyOver, CopyReady


class Twins:
    """Replicas "count" (sub-units 1 and 2) and "count~1" (3 and 4)."""

    def __init__(self, keyed=True):
        numbers, new_id, group, units = count(1), count(1).__next__, [], []
        self.pair = []
        for i, name in enumerate(("count", "count~1")):
            plan = unit_plan(name, keyed=keyed, replicas=2, replica_index=i, replica_id=i + 1, original="count")
            one = OneUnit(plan=plan, numbers=numbers, new_id=new_id)
            units.append(one.unit)
            one.unit.replicate(Replica(one.unit, group), GroupRequests(one.unit, units))
            self.pair.append(one.running())
        self.first, self.second = self.pair

    def check(self):
        """What the driver does when it is told to look."""
        for _ in range(5):
            for one in self.pair:
                if "check" in one.told():
                    one.unit.check(one.now)

    def lose(self):
        """Sub-unit 2 dies, and its successor 5 is known to all."""
        self.first.unit.died(2, "killed", self.first.now)
        self.first.sent()
        self.first.newcomer(5)

    def restore(self):
        """All that was asked for the restoring of 5 is answered."""
        number = self.first.unit.replication.restoring.number
        self.first.say(RangesHeld(5, number))
        for old in (3, 4):
            self.second.say(CopyReady(old, number))
        self.first.say(StateInstalled(5, number, 7, 70, 0.25))
        self.first.switched()
        self.check()


def test_a_replica_that_lost_a_sub_unit_is_down_and_its_rows_are_dropped_at_the_senders():
    twins = Twins()
    twins.first.unit.died(2, "killed", twins.first.now)
    assert down(one.unit for one in twins.pair) == (1,)
    (table,) = (m.table for _, m in twins.first.sent(TableFor))
    assert table.peers[2] == ("", "", 0)
    assert table.peers[1] == ("data 1", "express 1", 1)
    assert "settled" not in twins.first.told()  # the other replica has its rows: nothing is sent again


def test_the_successor_is_restored_by_the_other_replica():
    twins = Twins()
    twins.lose()
    ((to, hold),) = twins.first.sent(HoldRanges)
    assert to == 5
    copies = twins.second.sent(Copy)
    assert {to for to, _ in copies} == set(hold.olds) == {owner for _, _, owner in hold.moves}
    assert 5 not in twins.first.unit.table.owners()
    number = hold.version
    twins.first.say(RangesHeld(5, number))
    for old, _ in copies:
        twins.second.say(CopyReady(old, number))
    table = twins.first.table_for_sender()
    assert (set(table.peers), table.marks) == ({1, 5}, {"count~1": number})
    assert twins.first.unit.down
    twins.first.say(StateInstalled(5, number, 7, 70, 0.25))
    twins.first.switched()
    twins.check()
    assert not twins.first.unit.down
    (record,) = twins.first.unit.changes
    assert (record.kind, record.moved_keys, record.reason) == ("copy", 7, "brought up to date by count~1")
    assert record.id > 0
    assert twins.first.unit.measurements.counts.state_lost == 0


def test_neither_replica_is_changed_meanwhile_and_both_are_afterwards():
    twins = Twins()
    twins.lose()
    for one in twins.pair:
        assert one.unit.changing
        with pytest.raises(UsageError, match="one of its replicas is being brought up to date"):
            one.unit.check_change(3)
    with pytest.raises(UsageError, match="one of its replicas"):
        twins.second.unit.rescale(3, twins.second.now)
    assert all(one.unit.change is None for one in twins.pair)
    twins.restore()
    assert twins.second.unit.rescale(3, twins.second.now) is not None
    assert all(one.unit.change is not None for one in twins.pair)


@pytest.mark.parametrize(
    "message", [Register("up", (SENDER + 1,)), Unregister(SENDER), Broken(1, SENDER, "a gap")], ids=lambda m: str(m)[:9]
)
def test_a_sender_that_comes_or_goes_has_it_begin_anew(message):
    twins = Twins()
    twins.lose()
    twins.second.sent()
    twins.first.say(message)
    assert (("keeper", Kill(5))) in twins.first.sent(Kill)
    assert [to for to, _ in twins.second.sent(CopyOver)] == [3, 4]
    assert twins.first.unit.ended_here(5)
    assert twins.first.unit.down


def test_the_death_of_an_old_owner_has_it_begin_anew():
    twins = Twins()
    twins.lose()
    old = min(twins.first.unit.replication.restoring.old_owners)
    twins.second.unit.died(old, "killed", twins.second.now)
    assert twins.first.unit.replication.restoring is None
    assert twins.first.sent(Kill) == [("keeper", Kill(5))]


def test_what_was_ended_here_does_not_count_as_a_short_life():
    twins = Twins()
    twins.lose()
    for number in range(5, 30):
        twins.first.say(Broken(1, SENDER, ""), Added(1, (SENDER,)), Added(number, (SENDER,)))
        twins.first.unit.died(number, "killed", twins.first.now)
        assert "failed" not in twins.first.told()
        twins.first.newcomer(number + 1)
        twins.check()


def test_without_state_the_successor_takes_over_at_once():
    twins = Twins(keyed=False)
    twins.lose()
    assert twins.first.sent(HoldRanges) == []
    assert set(twins.first.unit.table.owners()) == {1, 5}
    twins.first.switched()
    twins.check()
    assert not twins.first.unit.down


def test_where_all_have_died_the_successor_begins_with_nothing():
    twins = Twins()
    for victim in (3, 4):
        twins.second.unit.died(victim, "killed", twins.second.now)
    twins.first.unit.died(2, "killed", twins.first.now)
    successor = max(twins.first.unit.subs)
    twins.first.newcomer(successor)
    assert set(twins.first.unit.table.owners()) == {1, successor}
    assert twins.first.sent(HoldRanges) == []


def test_those_that_a_death_in_mid_change_left_without_state_are_replaced():
    twins = Twins()
    twins.first.unit.alone.split(1, twins.first.now)
    twins.first.newcomer(5)
    twins.first.say(RangesHeld(5, twins.first.unit.change.version))
    assert twins.first.unit.rescaling.state is RescaleState.MOVING
    twins.first.unit.died(1, "killed", twins.first.now)
    twins.first.sent()
    twins.first.say(StateInstalled(5, twins.first.unit.change.version))
    twins.first.newcomer(6)
    twins.first.switched()
    twins.first.unit.check(twins.first.now)
    twins.check()
    assert twins.first.unit.change is None
    assert ("keeper", Kill(5)) in twins.first.sent(Kill)
    assert twins.first.unit.down


def test_a_status_has_a_replica_that_is_down_look_again():
    twins = Twins()
    twins.first.unit.died(2, "killed", twins.first.now)
    twins.first.told()
    twins.first.say(status(1))
    assert "check" in twins.first.told()


def test_one_request_is_one_change_of_each_replica_with_one_id():
    twins = Twins()
    owner = twins.second.unit.table.owners()[0]
    id = twins.first.unit.split(owner, twins.first.now)
    assert [one.unit.change.id for one in twins.pair] == [id, id]
    starts = [[start for start, _ in one.unit.change.table.snapshot()[1]] for one in twins.pair]
    assert starts[0] == starts[1]


def test_a_move_is_of_one_replica():
    twins = Twins()
    id = twins.first.unit.move(4, twins.first.now)
    assert twins.first.unit.change is None
    assert twins.second.unit.change.id == id


def test_replicas_that_are_divided_in_different_ways_are_not_split():
    twins = Twins()
    twins.second.unit.alone.merge(4, twins.second.now)
    twins.second.say(RangesHeld(3, twins.second.unit.change.version))
    twins.second.move_on()
    twins.second.unit.check(twins.second.now)
    with pytest.raises(UsageError, match="divided in different ways.* esault scale count N"):
        twins.first.unit.split(1, twins.first.now)
    with pytest.raises(UsageError, match="has no sub-unit 99"):
        twins.first.unit.merge(99, twins.first.now)
