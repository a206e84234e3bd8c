"""A change of many keys goes in subscales: whoever dies when, all ranges end where they were to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_unit import SENDER, OneUnit

from esault.control.units.rescale_table import RescaleState
from esault.control.units.subscales import MOST_CUTS, MOST_SUBSCALES, MOST_TABLES, SUBSCALE_KEYS
from esault.messages.change import Cancel, HandOverRanges, HoldRanges, Leave, RangesHeld
from esault.messages.control import Added, Ended, Finish, Fork, Register, TableFor
from esault.routing.table_change import merged, moved, rescaled, split

STARTING, BETWEEN, HOLDING_NEXT = RescaleState.STARTING, RescaleState.BETWEEN, RescaleState.HOLDING_NEXT


def with_keys(keys, **options):
    one = OneUnit(**options).running()
    one.has_keys(keys)
    return one


def begun(one, kind):
    """Ask for a change of this kind; the table as it should be in the end."""
    table = one.unit.table.copy()
    first, last = table.owners()[0], table.owners()[-1]
    new = max(one.unit.subs) + 1
    asked = {
        "split": (lambda: one.unit.split(first, one.now), lambda: split(table, first, new)),
        "merge": (lambda: one.unit.merge(last, one.now), lambda: merged(table, last)),
        "move": (lambda: one.unit.move(last, one.now), lambda: moved(table, last, new)),
        "rescale": (lambda: one.unit.rescale(4, one.now), lambda: rescaled(table, [*table.owners(), new, new + 1])),
    }
    ask, after = asked[kind]
    ask()
    for incarnation in [i for i, r in one.unit.subs.items() if r.built is None]:
        one.newcomer(incarnation)
    return after()


def begin_to_hold(one):
    one.say(*(RangesHeld(new, one.unit.change.version) for new in set(one.unit.change.waiting)))


def each_subscale(one):
    """What the unit sends when each subscale begins to move."""
    while one.unit.change is not None:
        begin_to_hold(one)
        yield one.sent()
        one.move_on()
        one.unit.check(one.now)
        one.check_owners()


@pytest.mark.parametrize("kind", ["split", "merge", "move", "rescale"])
def test_each_subscale_moves_its_part_and_the_last_one_gives_the_table_that_was_asked_for(kind):
    one = with_keys(10 * SUBSCALE_KEYS)
    after = begun(one, kind)
    seen = []
    for sent in each_subscale(one):
        handed = [m for _, m in sent if isinstance(m, HandOverRanges)]
        seen.append([(low, high, new) for m in handed for low, high, new in m.moves])
        # What is to come is said each time: an old owner that was replaced knows nothing of it.
        assert [len(m.later) for m in handed] == [len(one.unit.change.later) * len(m.moves) for m in handed]
    assert len(seen) == {"split": 5, "merge": 10, "move": 10, "rescale": 10}[kind]
    places = sorted((low, high) for part in seen for low, high, _ in part)
    assert all(before[1] < later[0] for before, later in pairwise(places))
    assert one.unit.table.snapshot()[1] == after.snapshot()[1]
    (record,) = one.unit.changes
    assert (record.kind, record.dropped, record.held) == (kind, "", 0.5)
    assert (
        record.moved_keys
        == 3 * sum(len({new for _, _, new in part} | {0}) > 0 for part in seen) * (2 if kind == "rescale" else 1)
        or kind == "rescale"
    )


def test_only_the_last_subscale_has_one_leave():
    one = with_keys(3 * SUBSCALE_KEYS)
    begun(one, "merge")
    assert [sum(isinstance(m, Leave) for _, m in sent) for sent in each_subscale(one)] == [0, 0, 1]


def test_senders_get_all_cuts_with_the_first_table_and_one_that_comes_later_gets_none_of_them():
    one = with_keys(6 * SUBSCALE_KEYS)
    begun(one, "split")
    tables = [[m.table for _, m in sent if isinstance(m, TableFor)][-1] for sent in each_subscale(one)]
    starts = [[start for start, _ in table.pairs] for table in tables]
    assert len(starts) == 3
    assert starts.count(starts[0]) == 3
    assert len(starts[0]) == 5
    assert len(one.unit.table) == 3


@pytest.mark.parametrize(
    ("keys", "options", "many"),
    [
        (0, {}, 1),
        (2 * SUBSCALE_KEYS, {}, 1),
        (2 * SUBSCALE_KEYS + 2, {}, 2),
        (10**9, {}, MOST_SUBSCALES),
        (10**9, {"batch": True}, 1),
        (10**9, {"objects": "unit"}, 1),
        (10**9, {"keyed": False}, 1),
    ],
)
def test_few_keys_and_what_stands_under_none_move_at_once(keys, options, many):
    if options.get("objects") == "unit":
        one = with_keys(keys, parallelism=1, **options)
        one.unit.move(1, one.now)
    else:
        one = with_keys(keys, **options)
        one.unit.split(1, one.now)
    assert 1 + len(one.unit.change.later) == many


def test_tables_stay_small_and_few_where_many_give_and_many_send(monkeypatch):
    one = with_keys(10**9)
    one.unit.rescale(40, one.now)
    moves = len(one.unit.change.moves)
    assert moves > 30
    assert 1 + len(one.unit.change.later) == MOST_CUTS // moves
    one = with_keys(10**9)
    one.say(Register("up", tuple(range(1000, 1000 + MOST_TABLES // 3))))
    one.say(*(Added(i, tuple(range(1000, 1000 + MOST_TABLES // 3))) for i in (1, 2)))
    one.unit.split(1, one.now)
    assert 1 + len(one.unit.change.later) == 2
    one = with_keys(10**9)
    one.unit.rescale(3000, one.now)
    assert not one.unit.change.later


def test_keys_whose_states_are_on_a_disk_move_at_once():
    one = OneUnit().running()
    one.has_keys(10**6, keys_on_disk=1)
    one.unit.split(1, one.now)
    assert not one.unit.change.later


def test_a_death_while_the_next_is_prepared_puts_it_off_until_there_is_a_replacement():
    one = OneUnit().running()
    new = one.reach(HOLDING_NEXT)
    one.sent()
    version = one.unit.change.version
    one.unit.died(1, "killed", one.now)
    sent = one.sent()
    assert [(to, m.version) for to, m in sent if isinstance(m, Cancel)] == [(new, version)]
    assert [m.build.incarnation for _, m in sent if isinstance(m, Fork)] == [4]
    assert one.unit.rescaling.state is BETWEEN
    one.say(RangesHeld(new, version))  # said before it heard: it means nothing
    one.newcomer(4)
    assert 4 in one.unit.table.owners()
    assert one.unit.rescaling.state is BETWEEN  # the sender does not know of it
    one.switched()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is HOLDING_NEXT
    ((to, hold),) = one.sent(HoldRanges)
    assert (to, set(hold.olds)) == (new, {4})
    assert hold.version > version
    one.move_all()
    assert [record.dropped for record in one.unit.changes] == [""]
    assert one.unit.table.owners() == [4, new, 2]


def test_all_that_go_back_begin_with_the_shares_that_were_asked_for():
    one = with_keys(6 * SUBSCALE_KEYS)
    after = begun(one, "split")
    begin_to_hold(one)
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is HOLDING_NEXT
    next_life = one.unit.successor(one.now)
    starts = [start for start, _ in after.snapshot()[1]]
    assert [start for start, _ in next_life.lives.first_table([11, 12, 13]).snapshot()[1]] == starts
    assert next_life.parallelism == 3
    one = with_keys(6 * SUBSCALE_KEYS)
    begun(one, "merge")
    begin_to_hold(one)
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.width == 2
    assert one.unit.successor(one.now).parallelism == 1
    assert [record.dropped for record in one.unit.changes] == [""]


@example(
    kind="merge",
    deaths=[(0, 0), (1, 0), (2, 1)],
)
@given(
    kind=st.sampled_from(["split", "merge", "move", "rescale"]),
    deaths=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=3),
)
def test_whoever_dies_when_the_shares_are_those_that_were_asked_for(kind, deaths):
    """`deaths`: in front of which step, and which of those that are there."""
    one = with_keys(8 * SUBSCALE_KEYS)
    after = begun(one, kind)
    begin_to_hold(one)
    for step in range(200):
        for _, which in [death for death in deaths if death[0] == step]:
            owners = [i for i, r in one.unit.subs.items() if r.started_at is not None and not r.leaving]
            one.now += 60.0  # else it is one that dies as soon as it lives
            if owners:
                one.unit.died(owners[which % len(owners)], "killed", one.now)
        for incarnation, record in list(one.unit.subs.items()):
            if record.built is None:
                one.newcomer(incarnation)
        one.switched()
        one.unit.check(one.now)
        change = one.unit.change
        if change is None:
            break
        if one.unit.rescaling.state is HOLDING_NEXT:
            begin_to_hold(one)
        elif step % 2:
            for new in list(change.holding_anew):
                one.say(RangesHeld(new, change.version))
            one.move_on()
        one.check_owners()
    else:
        raise AssertionError(f"it stands still: {one.unit.rescaling.state}")
    for incarnation, record in list(one.unit.subs.items()):
        if record.built is None:
            one.newcomer(incarnation)
    one.switched()
    # Names of those that died are others'; the shares are the same, in the same order.
    assert [start for start, _ in one.unit.table.snapshot()[1]] == [start for start, _ in after.snapshot()[1]]
    order = lambda table: [table.owners().index(owner) for _, owner in table.snapshot()[1]]
    assert order(one.unit.table) == order(after)
    one.check_owners()
    assert SENDER in one.unit.senders.known


@pytest.mark.parametrize(("kind", "dropped"), [("split", ""), ("merge", "all input of the unit had come before al")])
def test_a_change_goes_no_further_when_all_input_has_come(kind, dropped):
    one = with_keys(20 * SUBSCALE_KEYS)
    begun(one, kind)
    begin_to_hold(one)
    first, *others = one.unit.subs
    one.say(Ended(first))
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is HOLDING_NEXT  # another one gets tuples still
    one.say(*(Ended(each) for each in others))
    assert not one.sent(Finish)
    begin_to_hold(one)
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.change is None
    assert [to for to, _ in one.sent(Finish)] == list(one.unit.subs)
    (record,) = one.unit.changes
    assert (record.dropped[:40], record.after) == (dropped, len(one.unit.subs))
    one.check_owners()


class Checkpoints:
    """Those of a run: `due`, and the newest complete one."""

    newest = 7
    due = False

    def holds_up(self, behind, now):
        return self.due and self.newest <= behind


def test_a_checkpoint_passes_between_two_subscales_and_one_only():
    one = with_keys(6 * SUBSCALE_KEYS)
    checkpoints = one.unit.state.checkpoints = Checkpoints()
    begun(one, "split")
    assert one.unit.moving
    begin_to_hold(one)
    checkpoints.due = True
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is BETWEEN
    assert one.unit.changing
    assert not one.unit.moving
    one.unit.check(one.now)
    assert one.unit.rescaling.state is BETWEEN
    checkpoints.newest = 8  # and the next one is due already
    one.unit.check(one.now)
    assert one.unit.rescaling.state is HOLDING_NEXT
    assert one.unit.moving
    begin_to_hold(one)
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is BETWEEN
    one.unit.died(1, "killed", one.now)
    assert one.unit.moving  # no checkpoint begins while a sub-unit is missing
    one.newcomer(max(one.unit.subs))
    one.switched()
    one.unit.check(one.now)
    assert not one.unit.moving
    checkpoints.due = False
    one.unit.check(one.now)
    one.move_all()
    assert [record.dropped for record in one.unit.changes] == [""]
