"""What is asked of a unit: refused with one clear line, or begun with an id that its record has."""

from __future__ import annotations

from itertools import count

import pytest
from one_unit import OneUnit, unit_plan

from esault import UsageError
from esault.control.units.rescale_table import RescaleState
from esault.messages.change import RangesHeld
from esault.messages.control import Fork, Kill
from esault.routing.table_change import split


def over(one):
    """Bring the change that is on to its end; its record."""
    for new in list(one.unit.change.news):
        one.newcomer(new)
    for new in list(one.unit.change.waiting):
        one.say(RangesHeld(new, one.unit.change.version))
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is RescaleState.IDLE
    one.check_owners()
    return one.unit.changes[-1]


REQUESTS = {
    "split": lambda unit, now: unit.split(1, now),
    "merge": lambda unit, now: unit.merge(1, now),
    "move": lambda unit, now: unit.move(1, now),
    "rescale": lambda unit, now: unit.rescale(4, now),
    "adopt": lambda unit, now: unit.adopt(split(unit.table, 1, -1, None), 1, now, "balance", "why", "own"),
}
WIDTHS = {"split": 3, "merge": 1, "move": 2, "rescale": 4, "adopt": 3}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_has_an_id_that_stands_in_the_record_of_its_change(what):
    one = OneUnit(new_id=count(41).__next__).running()
    assert REQUESTS[what](one.unit, one.now) == 41
    record = over(one)
    assert record.id == 41
    assert record.kind == ("balance" if what == "adopt" else what)
    assert (record.before, record.after) == (2, WIDTHS[what])


def test_two_changes_that_begin_at_one_time_are_told_apart():
    one = OneUnit().running()
    ids = []
    for _ in range(2):
        ids.append(one.unit.move(one.unit.table.owners()[0], one.now))
        over(one)
        for record in list(one.unit.subs.values()):
            if record.leaving:
                one.unit.died(record.incarnation, "killed", one.now)
    assert [record.id for record in one.unit.changes] == ids
    assert ids[0] != ids[1]
    assert one.unit.changes[0].at == one.unit.changes[1].at


def test_as_many_as_there_are_is_no_change():
    one = OneUnit().running()
    assert one.unit.rescale(2, one.now) is None
    assert one.unit.change is None


@pytest.mark.parametrize(
    ("plan", "after", "why"),
    [
        ({"kind": "spout", "targets": ("a",)}, 3, "is a spout"),
        ({"objects": "unit"}, 3, "has one object"),
        ({"min_parallelism": 2}, 1, "its min_parallelism is 2"),
        ({"max_parallelism": 2}, 3, "its max_parallelism is 2"),
        ({"merger": True, "original": "count"}, 3, "is the merger of 'count'"),
    ],
)
def test_what_the_topology_forbids_is_refused(plan, after, why):
    one = OneUnit(plan=unit_plan(**plan)).running(sender=False)
    with pytest.raises(UsageError, match=why):
        one.unit.check_change(after)


def test_a_unit_that_starts_ends_or_has_just_lost_a_process_is_not_changed():
    one = OneUnit()
    one.unit.start(one.now)
    with pytest.raises(UsageError, match="it is starting, ending, or has just lost a process"):
        one.unit.check_change(3)
    one = OneUnit().running()
    one.unit.died(1, "killed", one.now)
    with pytest.raises(UsageError, match="it is starting, ending, or has just lost a process"):
        one.unit.check_change(3)


def test_a_sub_unit_that_is_not_there_is_told_with_those_that_are():
    one = OneUnit().running()
    for ask in (one.unit.split, one.unit.merge, one.unit.move):
        with pytest.raises(UsageError, match="has no sub-unit 99; it has 1, 2"):
            ask(99, one.now)
    with pytest.raises(UsageError, match="it needs one at least"):
        one.unit.rescale(0, one.now)


def test_a_move_to_a_host_is_asked_of_the_one_who_places():
    one = OneUnit().running()
    one.unit.move(1, one.now, host="there")
    assert one.builds[3].host == "there"


def test_what_was_forked_is_ended_where_there_is_no_place_for_the_next():
    one = OneUnit().running()
    new_build = one.unit.state.new_build

    def full(**fields):
        if len(one.builds) == 3:
            raise UsageError("no place")
        return new_build(**fields)

    one.unit.state.new_build = full
    with pytest.raises(UsageError, match="no place"):
        one.unit.rescale(4, one.now)
    assert set(one.unit.subs) == {1, 2}
    assert [type(m) for _, m in one.sent()] == [Fork, Kill]
    assert one.unit.rescaling.state is RescaleState.IDLE
