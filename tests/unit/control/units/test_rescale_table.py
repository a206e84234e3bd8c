"""The state machine of a change: every cell of its table does what it says, and its picture shows what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from one_unit import SENDER, OneUnit

from esault import UsageError
from esault.control.units.change import Requested
from esault.control.units.rescale_table import COMPLETIONS, MESSAGES, TABLE, Effect, Guard, RescaleState
from esault.control.units.signals import Died, Introduced, Look, NewOwnerStarted, Replaced, WentBack
from esault.messages.change import (
    Cancel,
    HandOverRanges,
    HandOverTo,
    HoldRanges,
    Leave,
    LostOldOwner,
    RangesHandedOver,
    RangesHeld,
    StateInstalled,
)
from esault.messages.control import Added, Broken, Fork, Kill, TableFor
from esault.routing.table_change import split

IDLE, STARTING, HOLDING, MOVING, BETWEEN, HOLDING_NEXT = RescaleState
DOCS = Path(__file__).parents[4] / "docs" / "explanation" / "rescaling.md"


def standing(state):
    """A unit with sub-units 1 and 2 in this state: 3 is to get half of what 1 has."""
    one = OneUnit().running()
    if state is not IDLE:
        assert one.reach(state) == 3
    one.sent()
    one.told()
    return one


def message(kind, one):
    """One of this kind, as it would come to the unit."""
    change = one.unit.change
    version = change.version if change is not None else one.unit.table.version + 1
    subs = one.unit.subs
    new = subs.get(3)
    table = one.unit.table
    made = {
        Requested: lambda: Requested(7, "split", lambda news: split(table, 1, news[0]), 1),
        NewOwnerStarted: NewOwnerStarted,
        RangesHeld: lambda: RangesHeld(3, version),
        Look: Look,
        StateInstalled: lambda: StateInstalled(3, version, held=0.5),
        RangesHandedOver: lambda: RangesHandedOver(1, version, (3,), 5, 50),
        Introduced: lambda: Introduced(new or subs[1]),
        Died: lambda: Died(subs[1]),
        Replaced: lambda: Replaced(subs[1]),
        WentBack: WentBack,
    }
    return made[kind]()


#: (state, message) -> (state after it, kinds of messages that the unit sends)
EXPECTED = {
    (IDLE, Requested): (STARTING, [Fork]),
    (STARTING, NewOwnerStarted): (STARTING, []),
    (STARTING, Died): (IDLE, [Kill]),
    (STARTING, WentBack): (IDLE, []),
    (HOLDING, RangesHeld): (MOVING, [TableFor, HandOverRanges]),
    (HOLDING, Look): (HOLDING, []),
    (HOLDING, Died): (IDLE, [Kill]),
    (HOLDING, WentBack): (IDLE, []),
    (MOVING, RangesHeld): (MOVING, []),
    (MOVING, Look): (MOVING, []),
    (MOVING, StateInstalled): (MOVING, []),
    (MOVING, RangesHandedOver): (MOVING, []),
    (MOVING, Introduced): (MOVING, [HoldRanges]),
    (MOVING, Replaced): (MOVING, [LostOldOwner]),
    (MOVING, WentBack): (IDLE, []),
    (BETWEEN, Look): (BETWEEN, []),
    (BETWEEN, Replaced): (BETWEEN, []),
    (BETWEEN, WentBack): (IDLE, []),
    (HOLDING_NEXT, RangesHeld): (MOVING, [TableFor, HandOverRanges]),
    (HOLDING_NEXT, Look): (HOLDING_NEXT, []),
    (HOLDING_NEXT, Died): (BETWEEN, [Cancel]),
    (HOLDING_NEXT, WentBack): (IDLE, []),
}
REFUSED = [(state, Requested) for state in RescaleState if state is not IDLE]


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", RescaleState, ids=lambda state: state.value)
def test_each_message_does_in_each_state_what_its_cell_says(state, kind):
    one = standing(state)
    said = message(kind, one)
    before = one.unit.table.snapshot()
    if (state, kind) in REFUSED:
        with pytest.raises(UsageError, match="is being changed already"):
            one.unit.rescaling.handle(said, one.now)
        assert one.unit.rescaling.state is state
        assert one.sent() == []
        return
    one.unit.rescaling.handle(said, one.now)
    after, sends = EXPECTED.get((state, kind), (state, []))
    assert one.unit.rescaling.state is after
    assert [type(m) for _, m in one.sent()] == sends
    assert (one.unit.change is None) == (after is IDLE)
    one.unit.table.check()
    if (state, kind) not in EXPECTED:
        assert one.unit.table.snapshot() == before


def test_the_table_has_the_cells_that_are_tested_and_no_others():
    cells = {(state, kind) for state, row in TABLE.items() for kind in row}
    assert cells == {*EXPECTED, *REFUSED}
    assert {kind for _, kind in cells} == set(MESSAGES)
    assert set(TABLE) == set(RescaleState)
    used = {e for row in TABLE.values() for cell in row.values() for e in cell.effects}
    completions = [each for row in COMPLETIONS.values() for each in row]
    used |= {e for completion in completions for e in completion.effects}
    assert used == set(Effect)
    assert {completion.guard for completion in completions} == set(Guard)


@pytest.mark.parametrize("state", [HOLDING, MOVING])
@pytest.mark.parametrize("kind", [RangesHeld, StateInstalled, RangesHandedOver])
def test_an_answer_that_names_another_change_does_nothing(state, kind):
    one = standing(state)
    late = kind(3, one.unit.change.version - 1)
    waiting = set(one.unit.change.waiting), set(one.unit.change.giving)
    one.say(late)
    assert (one.unit.change.waiting, one.unit.change.giving) == waiting
    assert one.unit.rescaling.state is state


def test_a_new_owner_that_is_started_is_told_to_hold():
    one = standing(STARTING)
    one.newcomer(3)
    assert one.unit.rescaling.state is HOLDING
    ((to, hold),) = one.sent(HoldRanges)
    assert (to, hold.olds, hold.everything) == (3, {1: "express 1"}, True)


def test_the_change_ends_once_all_has_moved_and_every_sender_has_switched():
    one = standing(MOVING)
    one.say(StateInstalled(3, one.unit.change.version, held=0.5))
    one.say(RangesHandedOver(1, one.unit.change.version, (3,), 5, 50))
    assert one.unit.rescaling.state is MOVING
    one.switched()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is IDLE
    (record,) = one.unit.changes
    assert (record.moved_keys, record.moved_bytes, record.held, record.dropped) == (5, 50, 0.5, "")
    assert (record.before, record.after) == (2, 3)


def test_a_replacement_of_a_new_owner_holds_before_it_takes_over():
    one = standing(MOVING)
    one.unit.died(3, "killed", one.now)
    assert max(one.unit.subs) == 4
    one.sent()
    one.newcomer(4)
    ((to, _),) = one.sent(HoldRanges)
    assert to == 4
    assert 4 not in one.unit.table.owners()
    one.say(RangesHeld(4, one.unit.change.version))
    assert 4 in one.unit.table.owners()
    sent = one.sent()
    assert [(to, m.dead, m.new) for to, m in sent if isinstance(m, HandOverTo)] == [(1, 3, 4)]
    one.move_on()
    one.unit.check(one.now)
    assert one.unit.rescaling.state is IDLE
    one.check_owners()


@pytest.mark.parametrize("state", [HOLDING, HOLDING_NEXT])
def test_where_a_channel_breaks_meanwhile_all_hold_anew_by_a_version_that_its_sender_has_not(state):
    one = standing(state)
    before = one.unit.change.version
    one.say(Broken(2, SENDER, "a frame is missing"))
    one.say(*(Added(i, (SENDER,)) for i in list(one.unit.subs)))
    assert one.table_for_sender().version == before  # the barrier of its new channels says so, too
    one.say(RangesHeld(3, before))
    assert one.unit.rescaling.state is state
    ((to, hold),) = one.sent(HoldRanges)
    assert (to, hold.version) == (3, before + 1)
    one.say(RangesHeld(3, before))  # said twice: it means nothing
    assert one.unit.rescaling.state is state
    one.say(RangesHeld(3, before + 1))
    assert one.unit.rescaling.state is MOVING
    assert [m.table.version for _, m in one.sent(TableFor)] == [before + 1]
    one.move_all()
    assert [record.dropped for record in one.unit.changes] == [""]


def test_a_dropped_merge_takes_back_what_it_had_told_those_that_stay():
    one = OneUnit().running()
    first, second = one.unit.table.owners()
    one.unit.merge(second, one.now)
    assert one.unit.rescaling.state is HOLDING
    version = one.unit.change.version
    one.unit.died(second, "killed", one.now)
    assert [(to, m.version) for to, m in one.sent(Cancel)] == [(first, version)]
    assert one.unit.table.version == version
    assert one.unit.changes[0].dropped == f"count/{second} died"


def test_those_without_ranges_leave_when_the_table_is_published():
    one = OneUnit().running()
    first, second = one.unit.table.owners()
    one.unit.merge(second, one.now)
    one.say(RangesHeld(first, one.unit.change.version))
    assert [to for to, _ in one.sent(Leave)] == [second]
    assert one.unit.table.owners() == [first]


def test_what_was_forked_is_ended_where_the_table_cannot_be():
    one = OneUnit().running()
    with pytest.raises(ValueError, match="cannot be split at"):
        one.unit.split(1, one.now, at=1 << 40)
    assert one.unit.rescaling.state is IDLE
    assert set(one.unit.subs) == {1, 2}
    assert [type(m) for _, m in one.sent()] == [Fork, Kill]


# the picture -------------------------------------------------------------------------------------


def words(effects):
    return ", ".join(effect.value for effect in effects)


def drawn():
    """The table as a diagram."""
    lines = ["stateDiagram-v2", "  [*] --> idle"]
    for state, row in TABLE.items():
        for kind, cell in row.items():
            does = f" / {words(cell.effects)}" if cell.effects else ""
            if cell.effects or cell.next is not None:
                lines.append(f"  {state.value} --> {(cell.next or state).value}: {kind.__name__}{does}")
        for completion in COMPLETIONS.get(state, ()):
            does = f" / {words(completion.effects)}" if completion.effects else ""
            lines.append(f"  {state.value} --> {completion.next.value}: [{completion.guard.value}]{does}")
    return "\n".join(lines)


def test_the_picture_in_the_docs_shows_the_table():
    pictures = re.findall(r"```mermaid\n(stateDiagram-v2\n.*?)\n```", DOCS.read_text(), re.DOTALL)
    assert pictures == [drawn()], f"put this into {DOCS.name}:\n{drawn()}"
