"""The table of phases cell by cell, and its pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.errors import EsaultError
from esault.flow.worker import phase as module
from esault.flow.worker.phase import TRANSITIONS, Event, Lifecycle, Phase

DESIGN = Path(__file__).parents[4] / "docs" / "explanation" / "design.md"

#: a row for each phase, a column for each event; "=": it stays, ".": it cannot happen
CELLS = """
             START    SENDER_ADDED  INPUT_ENDED  FINISH     ELEMENTS_FINISHED  END_SENT  CLOSE     STOP     FAIL
CREATED      RUNNING  =             .            .          .                  .         STOPPING  STOPPED  FAILED
RUNNING      .        =             ENDED        FINISHING  .                  .         STOPPING  STOPPED  FAILED
ENDED        .        RUNNING       .            FINISHING  .                  .         STOPPING  STOPPED  FAILED
FINISHING    .        =             .            =          COMMITTING         .         STOPPING  STOPPED  FAILED
COMMITTING   .        =             .            =          .                  FINISHED  STOPPING  STOPPED  FAILED
FINISHED     .        =             .            =          .                  .         STOPPING  STOPPED  FAILED
STOPPING     =        =             .            =          .                  .         =         STOPPED  FAILED
STOPPED      =        =             .            =          .                  .         .         =        =
FAILED       =        =             .            =          .                  .         .         STOPPED  =
"""


def _cells():
    head, *rows = [line.split() for line in CELLS.strip().splitlines()]
    for name, *cells in rows:
        for event, cell in zip(head, cells, strict=True):
            yield Phase[name], Event[event], {"=": Phase[name], ".": None}.get(cell) or Phase.__members__.get(cell)


@pytest.mark.parametrize(("phase", "event", "after"), list(_cells()), ids=lambda each: getattr(each, "name", "none"))
def test_a_cell_of_the_table(phase, event, after):
    life = Lifecycle()
    life.phase = phase
    if after is None:
        with pytest.raises(EsaultError, match=f"that is {phase.value} has no transition for '{event.value}'"):
            life.on(event)
        assert life.phase is phase
    else:
        assert life.on(event) is life.phase is after


def test_there_are_cells_for_all_phases_and_events_and_no_transition_beside_them():
    cells = {(phase, event): after for phase, event, after in _cells()}
    assert set(cells) == {(phase, event) for phase in Phase for event in Event}
    assert {key: after for key, after in cells.items() if after is not None} == TRANSITIONS


def test_all_phases_can_be_reached_and_left_for_the_last_one():
    reached, new = set(), {Phase.CREATED}
    while new:
        reached |= new
        new = {after for (before, _), after in TRANSITIONS.items() if before in reached} - reached
    assert reached == set(Phase)
    assert all(TRANSITIONS[phase, Event.STOP] is Phase.STOPPED for phase in Phase)


def test_elements_that_were_finished_stay_so():
    life = Lifecycle()
    for event in (Event.START, Event.INPUT_ENDED, Event.FINISH):
        life.on(event)
        assert not life.elements_finished
    life.on(Event.ELEMENTS_FINISHED)
    life.on(Event.FAIL)
    assert life.elements_finished
    assert Lifecycle(elements_finished=True).elements_finished


def test_what_the_loop_asks_of_a_phase():
    assert [p for p in Phase if not p.alive] == [Phase.STOPPED, Phase.FAILED]
    assert [p for p in Phase if not p.works] == [Phase.CREATED, Phase.STOPPING, Phase.STOPPED, Phase.FAILED]
    assert [p for p in Phase if p.closing] == [Phase.COMMITTING, Phase.FINISHED]


# pictures ----------------------------------------------------------------------------------------


#: phases that the pictures draw as one where an event leads from all of them to the same one
GROUPS = {
    "alive": {phase for phase in Phase if phase.alive},
    "open": {phase for phase in Phase if phase.alive} - {Phase.STOPPING},
}


def arrows():
    """(from, event, to) of all that changes the phase."""
    for event in Event:
        moves = {before: after for (before, on), after in TRANSITIONS.items() if on is event and before is not after}
        for name, group in GROUPS.items():
            if group <= set(moves) and len({moves[before] for before in group}) == 1:
                yield name, event.name, moves[Phase.RUNNING].name
                moves = {before: after for before, after in moves.items() if before not in group}
        yield from ((before.name, event.name, after.name) for before, after in moves.items())


def ascii_picture():
    return "\n".join(f"    {before:<10} -- {event} -->".ljust(40) + after for before, event, after in arrows())


def mermaid_picture():
    def drawn(indent, befores):
        return [f"{indent}{before} --> {after}: {event}" for before, event, after in arrows() if before in befores]

    inside = {phase.name for phase in GROUPS["open"]}
    return "\n".join(
        [
            *("```mermaid", "stateDiagram-v2", "  [*] --> CREATED", "  state alive {", "    state open {"),
            *drawn("      ", inside),
            "    }",
            *drawn("    ", {"open"}),
            "  }",
            *drawn("  ", {"alive", *(phase.name for phase in Phase)} - inside),
            *("  STOPPED --> [*]", "```"),
        ]
    )


def test_the_picture_in_the_module_is_that_of_the_table():
    assert ascii_picture() in module.__doc__, ascii_picture()


def test_the_picture_in_the_docs_is_that_of_the_table():
    assert mermaid_picture() in DESIGN.read_text(), mermaid_picture()
