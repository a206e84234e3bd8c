"""Sub-units are forked, built, known, started, and replaced when they die."""

from __future__ import annotations

import pytest
from one_unit import OneUnit, status

from esault.control.units.lives import MOST_SHORT_LIVES, MOST_STILLBORN, SHORT_LIFE
from esault.messages.checkpoint import CompletedUnit
from esault.messages.control import Drain, Fork, Start


def test_the_table_is_made_when_the_last_of_the_first_is_built():
    one = OneUnit(parallelism=3)
    one.unit.start(one.now)
    assert [to for to, _ in one.sent(Fork)] == ["keeper"] * 3
    one.built(1, 2)
    assert one.unit.table is None
    one.built(3)
    assert one.unit.table is not None
    assert one.unit.table.owners() == [1, 2, 3]
    assert one.told() == ["built"]
    assert one.unit.history == [(10.0, 3)]


def test_all_are_started_when_tuples_are_to_flow():
    one = OneUnit()
    one.unit.start(one.now)
    one.built(1, 2)
    one.sent()
    one.unit.go(11.0)
    assert one.sent() == [(1, Start()), (2, Start())]
    assert one.unit.steady


def test_a_death_before_the_run_is_wired_is_as_if_nothing_had_been_built():
    one = OneUnit()
    one.unit.start(one.now)
    one.built(1, 2)
    one.unit.died(2, "killed", one.now)
    assert one.unit.table is None
    assert set(one.unit.subs) == {1, 3}
    one.built(3)
    assert one.unit.table is not None
    assert one.unit.table.owners() == [1, 3]


def test_a_replacement_takes_the_place_once_senders_and_targets_know_it():
    one = OneUnit(targets=("a",)).running()
    ranges = one.unit.table.ranges(2)
    one.unit.died(2, "killed", 20.0)
    assert one.unit.died_at == 20.0
    assert one.unit.table.ranges(2) == ranges
    one.built(3)
    assert one.unit.table.ranges(2) == ranges
    one.newcomer(3)
    assert one.unit.table.ranges(3) == ranges
    assert 3 in [to for to, m in one.sent(Start)]
    one.check_owners()


def test_a_replacement_that_dies_is_replaced_for_the_first_one():
    one = OneUnit().running()
    one.unit.died(2, "killed", one.now)
    one.unit.died(3, "killed", one.now)
    assert one.unit.subs[4].replaces == 2
    one.newcomer(4)
    assert set(one.unit.table.owners()) == {1, 4}


@pytest.mark.parametrize("started", [False, True])
def test_a_unit_whose_processes_die_in_a_row_fails(started):
    one = OneUnit().running()
    victim = 2
    for _ in range(MOST_SHORT_LIVES if started else MOST_STILLBORN + 1):
        assert "failed" not in one.told()
        one.unit.died(victim, "killed", one.now)
        victim = max(one.unit.subs)
        if started:
            one.newcomer(victim)
    assert "failed" in one.told()


@pytest.mark.parametrize("started", [False, True])
def test_those_that_die_with_their_host_are_replaced_however_many_there_are(started):
    one = OneUnit(parallelism=MOST_SHORT_LIVES + 1)
    if started:
        one.running()
    else:
        one.unit.start(one.now)
    first = list(one.unit.subs)
    for incarnation in first:
        one.unit.died(incarnation, "its host b is lost", one.now, with_host=True)
    assert "failed" not in one.told()
    assert len(one.unit.subs) == len(first) and not set(one.unit.subs) & set(first)


def test_lives_that_were_long_enough_are_not_counted():
    one = OneUnit().running()
    for _ in range(2 * MOST_SHORT_LIVES):
        one.now += SHORT_LIFE
        one.unit.died(max(one.unit.subs), "killed", one.now)
        one.newcomer(max(one.unit.subs))
    assert "failed" not in one.told()


def test_a_spout_goes_on_where_its_last_status_was():
    one = OneUnit(kind="spout", targets=("a",)).running(sender=False)
    one.say(status(2, position=b"here", read=70))
    one.unit.died(2, "killed", one.now)
    build = one.builds[3]
    assert (build.part, build.position, build.source) == (1, b"here", 2)


def test_who_drains_reads_no_more_also_as_a_replacement():
    one = OneUnit(kind="spout", targets=("a",)).running(sender=False)
    one.say(status(2, read=70))
    one.unit.drain()
    assert one.sent() == [(1, Drain()), (2, Drain())]
    one.unit.died(2, "killed", one.now)
    one.newcomer(3)
    assert (3, Drain(70)) in one.sent()


def test_it_begins_with_the_state_of_a_checkpoint():
    one = OneUnit()
    one.unit.begin_from(CompletedUnit("bolt", "key", 2, finished=True), 5, one.now)
    restores = [one.builds[i].restore for i in (1, 2)]
    assert [(r.number, len(r.ranges), r.finished) for r in restores] == [(5, 1, True)] * 2
    one.built(1, 2)
    one.unit.go(one.now)
    assert not one.unit.steady  # a newcomer would finish what it gets once more
