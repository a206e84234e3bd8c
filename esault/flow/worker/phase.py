"""The life of a sub-unit: its phases, and the one table that says what leads from each to the next.

The table as a picture; a test draws it anew and compares. Events that change nothing are left out. `alive` is every phase
but the last two, `open` is those but STOPPING.

    CREATED    -- START -->             RUNNING
    ENDED      -- SENDER_ADDED -->      RUNNING
    RUNNING    -- INPUT_ENDED -->       ENDED
    RUNNING    -- FINISH -->            FINISHING
    ENDED      -- FINISH -->            FINISHING
    FINISHING  -- ELEMENTS_FINISHED --> COMMITTING
    COMMITTING -- END_SENT -->          FINISHED
    open       -- CLOSE -->             STOPPING
    alive      -- STOP -->              STOPPED
    FAILED     -- STOP -->              STOPPED
    alive      -- FAIL -->              FAILED

Some facts about a sub-unit are no phases, since each may hold in several of them and none ever ceases to hold. They are:
a change took its ranges (`SubUnit.leaving`); its elements have been finished, be it before the checkpoint that it began
with (`Lifecycle.elements_finished`); and why a spout reads no more (`exhausted`, `draining`, `halted` of `SpoutSubUnit`).
"""

from __future__ import annotations

from enum import Enum

from esault.errors import EsaultError

__all__ = ["TRANSITIONS", "Event", "Lifecycle", "Phase"]


class Phase(Enum):
    """A part of the life of a sub-unit."""

    #: it is built and wired, and waits to be started
    CREATED = "created"
    #: it reads or processes
    RUNNING = "running"
    #: no input will come any more, and its unit was told
    ENDED = "ended"
    #: its elements are being finished
    FINISHING = "finishing"
    #: its elements are finished; its own roots and its sinks are not yet done
    COMMITTING = "committing"
    #: END was sent
    FINISHED = "finished"
    #: its objects take their time to close; only those that are async do
    STOPPING = "stopping"
    #: the last word was said
    STOPPED = "stopped"
    #: user code or a sink failed; what is left is to be stopped
    FAILED = "failed"

    #: turns are taken
    alive: bool
    #: turns process what came in, or finish elements
    works: bool
    #: sinks commit at once, since what waits for them is the end
    closing: bool

    def __init__(self, said: str) -> None:
        # Plain attributes: the loop looks at them in each turn.
        self.alive = said not in ("stopped", "failed")
        self.works = said in ("running", "ended", "finishing", "committing", "finished")
        self.closing = said in ("committing", "finished")


class Event(Enum):
    """A cause of a transition: a message of the unit, or something that the sub-unit found."""

    START = "start"
    #: a sender was made known
    SENDER_ADDED = "sender added"
    #: all senders have sent END, or the source has ended, and all that came is done
    INPUT_ENDED = "input ended"
    FINISH = "finish"
    ELEMENTS_FINISHED = "elements finished"
    #: own roots are done, sinks have committed and END was sent
    END_SENT = "end sent"
    #: objects that take their time were told to close
    CLOSE = "close"
    STOP = "stop"
    FAIL = "fail"


_ALIVE = [phase for phase in Phase if phase.alive]
#: what the unit may send before it has heard of a failure or an end
_CROSSING = (Event.START, Event.SENDER_ADDED, Event.FINISH)

#: (phase, event) -> phase. What does not stand here cannot happen
TRANSITIONS: dict[tuple[Phase, Event], Phase] = {
    (Phase.CREATED, Event.START): Phase.RUNNING,
    (Phase.CREATED, Event.SENDER_ADDED): Phase.CREATED,
    (Phase.RUNNING, Event.SENDER_ADDED): Phase.RUNNING,
    (Phase.RUNNING, Event.INPUT_ENDED): Phase.ENDED,
    (Phase.RUNNING, Event.FINISH): Phase.FINISHING,
    (Phase.ENDED, Event.SENDER_ADDED): Phase.RUNNING,
    (Phase.ENDED, Event.FINISH): Phase.FINISHING,
    (Phase.FINISHING, Event.SENDER_ADDED): Phase.FINISHING,
    (Phase.FINISHING, Event.FINISH): Phase.FINISHING,
    (Phase.FINISHING, Event.ELEMENTS_FINISHED): Phase.COMMITTING,
    (Phase.COMMITTING, Event.SENDER_ADDED): Phase.COMMITTING,
    (Phase.COMMITTING, Event.FINISH): Phase.COMMITTING,
    (Phase.COMMITTING, Event.END_SENT): Phase.FINISHED,
    (Phase.FINISHED, Event.SENDER_ADDED): Phase.FINISHED,
    (Phase.FINISHED, Event.FINISH): Phase.FINISHED,
    **{(phase, Event.CLOSE): Phase.STOPPING for phase in _ALIVE},
    **{(phase, Event.FAIL): Phase.FAILED for phase in (*_ALIVE, Phase.FAILED)},
    (Phase.STOPPED, Event.FAIL): Phase.STOPPED,
    **{(phase, Event.STOP): Phase.STOPPED for phase in Phase},
    **{(p, event): p for p in (Phase.STOPPING, Phase.STOPPED, Phase.FAILED) for event in _CROSSING},
}


class Lifecycle:
    """The phase that a sub-unit is in."""

    __slots__ = ("elements_finished", "phase")

    def __init__(self, elements_finished: bool = False) -> None:
        self.phase = Phase.CREATED
        #: its elements were finished: in this run, or before the checkpoint that it began with
        self.elements_finished = elements_finished

    @property
    def over(self) -> bool:
        """True from when elements are being finished: user code is called for nothing else any more."""
        return self.phase is Phase.FINISHING or self.elements_finished

    def on(self, event: Event) -> Phase:
        """Go where the table leads. Raises EsaultError for an event that the phase does not know."""
        try:
            self.phase = TRANSITIONS[self.phase, event]
        except KeyError:
            raise EsaultError(
                f"the engine is at fault: a sub-unit that is {self.phase.value} has no transition for {event.value!r}; "
                "please report this"
            ) from None
        if event is Event.ELEMENTS_FINISHED:
            self.elements_finished = True
        return self.phase
