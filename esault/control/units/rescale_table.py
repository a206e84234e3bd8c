"""The state machine of a change, as a table: (state, message) -> effects, and what each state waits for.

What is not in the table does nothing. An answer that names another change than the one that is on does nothing either.
`docs/explanation/rescaling.md` shows the table as a picture, which a test draws from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from esault.control.units.change import Requested
from esault.control.units.signals import Died, Introduced, Look, NewOwnerStarted, Replaced, WentBack
from esault.messages.change import RangesHandedOver, RangesHeld, StateInstalled
from esault.value_class import value_class

__all__ = ["COMPLETIONS", "MESSAGES", "TABLE", "Cell", "Completion", "Effect", "Guard", "RescaleState"]


class RescaleState(Enum):
    """The progress of a unit with its change."""

    #: no change is on
    IDLE = "idle"
    #: new owners are forked and made known to all
    STARTING = "starting"
    #: new owners begin to hold the rows of what they will get
    HOLDING = "holding"
    #: the table is published; old owners hand over what they have
    MOVING = "moving"
    #: a subscale has moved, and it is looked whether the next one may begin
    BETWEEN = "between"
    #: new owners begin to hold the rows of the next subscale
    HOLDING_NEXT = "next"


class Effect(Enum):
    """A step that the machine takes."""

    REFUSE = "refuse"
    FORK_NEW_OWNERS = "fork new owners"
    TELL_NEW_OWNERS_TO_HOLD = "have new owners hold"
    NOTE_HELD = "note who holds"
    PUBLISH_TABLE = "publish the table"
    TELL_OLD_OWNERS_TO_HAND_OVER = "have old owners hand over"
    LET_THE_ENDED_FINISH = "finish the ended"
    HOLD_BEFORE_TAKING_OVER = "a replaced new owner holds first"
    LET_REPLACEMENT_TAKE_OVER = "a replaced new owner takes over"
    NOTE_INSTALLED = "note who has its state"
    NOTE_HANDED_OVER = "note who has handed over"
    GO_ON_WITHOUT_THE_DEAD = "go on without the dead"
    RENAME_LATER = "name the replacement in what is to come"
    BEGIN_SUBSCALE = "begin the next subscale"
    PUT_SUBSCALE_OFF = "put the subscale off"
    DROP = "drop the change"
    RECORD_AS_DROPPED = "record it as dropped"
    RECORD_AS_DONE = "record it as done, all go on with its table"
    RECORD_AS_CUT_SHORT = "record how far it came"
    RECORD = "record the change"


class Guard(Enum):
    """A condition that a state waits for."""

    NEW_OWNERS_STARTED = "all new owners started"
    OVERTAKEN = "all hold, a sender has its version"
    ALL_HOLD = "all hold, no sender registers"
    ALL_MOVED = "all moved, all senders switched"
    NOTHING_LEFT = "no subscale is left"
    INPUT_ENDED = "all input has come"
    ALL_STARTED = "all sub-units work, no checkpoint waits"


@value_class(frozen=True)
class Cell:
    """The effects of a message in a state."""

    effects: tuple[Effect, ...] = ()
    #: the state after it; None: the same
    next: RescaleState | None = None


@value_class(frozen=True)
class Completion:
    """The effects once a state has what it waits for."""

    guard: Guard
    effects: tuple[Effect, ...]
    next: RescaleState


#: all messages and signals that the machine takes
MESSAGES: tuple[type, ...] = (
    Requested,
    NewOwnerStarted,
    RangesHeld,
    Look,
    StateInstalled,
    RangesHandedOver,
    Introduced,
    Died,
    Replaced,
    WentBack,
)

_REFUSED = Cell((Effect.REFUSE,))
#: no sender knows of the table yet: as if nothing had been asked for
_DROPPED = Cell((Effect.DROP,), RescaleState.IDLE)
_BROKEN_OFF = Cell((Effect.RECORD_AS_DROPPED,), RescaleState.IDLE)
#: the sub-units of the next life begin by the table as it will be in the end
_DONE = Cell((Effect.RECORD_AS_DONE,), RescaleState.IDLE)
_RENAMED = Cell((Effect.RENAME_LATER,))

TABLE: Mapping[RescaleState, Mapping[type, Cell]] = {
    RescaleState.IDLE: {
        Requested: Cell((Effect.FORK_NEW_OWNERS,), RescaleState.STARTING),
    },
    RescaleState.STARTING: {
        Requested: _REFUSED,
        NewOwnerStarted: Cell(),
        Died: _DROPPED,
        WentBack: _BROKEN_OFF,
    },
    RescaleState.HOLDING: {
        Requested: _REFUSED,
        RangesHeld: Cell((Effect.NOTE_HELD,)),
        Look: Cell(),
        Died: _DROPPED,
        WentBack: _BROKEN_OFF,
    },
    RescaleState.MOVING: {
        Requested: _REFUSED,
        RangesHeld: Cell((Effect.LET_REPLACEMENT_TAKE_OVER,)),
        Look: Cell(),
        StateInstalled: Cell((Effect.NOTE_INSTALLED,)),
        RangesHandedOver: Cell((Effect.NOTE_HANDED_OVER,)),
        Introduced: Cell((Effect.HOLD_BEFORE_TAKING_OVER,)),
        Replaced: Cell((Effect.GO_ON_WITHOUT_THE_DEAD, Effect.RENAME_LATER)),
        WentBack: _DONE,
    },
    RescaleState.BETWEEN: {
        Requested: _REFUSED,
        Look: Cell(),
        Replaced: _RENAMED,
        WentBack: _DONE,
    },
    RescaleState.HOLDING_NEXT: {
        Requested: _REFUSED,
        RangesHeld: Cell((Effect.NOTE_HELD,)),
        Look: Cell(),
        Died: Cell((Effect.PUT_SUBSCALE_OFF,), RescaleState.BETWEEN),
        WentBack: _DONE,
    },
}

#: a channel broke meanwhile, and its sender has had a table of the same version, by the owners before
_HELD_ANEW = {
    state: Completion(Guard.OVERTAKEN, (Effect.TELL_NEW_OWNERS_TO_HOLD,), state)
    for state in (RescaleState.HOLDING, RescaleState.HOLDING_NEXT)
}
_PUBLISHED = Completion(
    Guard.ALL_HOLD,
    (Effect.PUBLISH_TABLE, Effect.TELL_OLD_OWNERS_TO_HAND_OVER, Effect.LET_THE_ENDED_FINISH),
    RescaleState.MOVING,
)

#: looked at in this order after each message that has a cell, until none holds
COMPLETIONS: Mapping[RescaleState, tuple[Completion, ...]] = {
    RescaleState.STARTING: (
        Completion(Guard.NEW_OWNERS_STARTED, (Effect.TELL_NEW_OWNERS_TO_HOLD,), RescaleState.HOLDING),
    ),
    RescaleState.HOLDING: (_HELD_ANEW[RescaleState.HOLDING], _PUBLISHED),
    RescaleState.MOVING: (Completion(Guard.ALL_MOVED, (), RescaleState.BETWEEN),),
    RescaleState.BETWEEN: (
        Completion(Guard.NOTHING_LEFT, (Effect.RECORD,), RescaleState.IDLE),
        Completion(Guard.INPUT_ENDED, (Effect.RECORD_AS_CUT_SHORT,), RescaleState.IDLE),
        Completion(
            Guard.ALL_STARTED, (Effect.BEGIN_SUBSCALE, Effect.TELL_NEW_OWNERS_TO_HOLD), RescaleState.HOLDING_NEXT
        ),
    ),
    RescaleState.HOLDING_NEXT: (_HELD_ANEW[RescaleState.HOLDING_NEXT], _PUBLISHED),
}
