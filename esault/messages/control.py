"""Control messages of a sub-unit's life and wiring, by who says them to whom; those of a change are in `change`.

Incarnations are integers that are never used twice in a run; a message names the sub-unit it speaks of by its
incarnation, so that one that comes late speaks of a life that is over and can do no harm.

It is one module of over 300 lines: it is a list of small values and no logic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from esault.messages.checkpoint import Restore
from esault.messages.settings import Settings
from esault.messages.status import Status
from esault.value_class import value_class

__all__ = [
    "AckRouting",
    "AckRoutingSet",
    "Add",
    "Added",
    "BeginReading",
    "Broken",
    "Build",
    "Built",
    "CaughtUp",
    "Connect",
    "Drain",
    "DumpThreads",
    "Ended",
    "Exited",
    "Failed",
    "Finish",
    "Finished",
    "Fork",
    "Gone",
    "Grace",
    "Kill",
    "NotForked",
    "Pairs",
    "PeekState",
    "PeekedState",
    "Register",
    "Registered",
    "Release",
    "ReleaseSlices",
    "SendAgain",
    "SenderSwitched",
    "SentAgain",
    "Spill",
    "Start",
    "Stop",
    "Stopped",
    "Switched",
    "Table",
    "TableFor",
    "ThreadDump",
    "Throttle",
    "Unregister",
]

#: ((first ring position, incarnation), ...), sorted: a snapshot of an output table
Pairs = tuple[tuple[int, int], ...]


# unit -> sub-unit ------------------------------------------------------------------------------


@value_class(frozen=True)
class Build:
    """Be this sub-unit: build the topology, make the objects, open the sockets; then say Built."""

    unit: str
    incarnation: int
    #: the run epoch
    epoch: int
    host: str
    run: str
    settings: Settings
    #: for a parallel spout
    part: int = 0
    parts: int = 1
    #: for a spout: where to go on and how many rows came before, packed by the codec; None from the start
    position: bytes | None = None
    #: for a spout: the first sub-unit that read this part; 0: this one
    source: int = 0
    #: the state to begin with; None: begin anew
    restore: Restore | None = None
    #: where answers to probes go; empty: there are no probes
    probes: str = ""
    #: identity of the state folder; empty: there is none
    lineage: str = ""
    #: the checkpoint that was begun last; None without checkpoints
    checkpoint: int | None = None
    #: the checkpoint that all go back to, 0: the beginning; None: nothing was undone
    back_to: int | None = None
    #: the run that this one goes on with, and from which checkpoint, 0: from its beginning; None: it began anew
    continues: tuple[str, int] | None = None
    #: it is one more, for a change: others process its keys until it is built
    joins: bool = False


@value_class(frozen=True)
class Add:
    """These senders will send to you: (incarnation, channel number)."""

    senders: tuple[tuple[int, int], ...]


@value_class(frozen=True)
class Gone:
    """This sender is dead, or has left in order: what it sent and you have not read is dropped; it counts as every barrier and END."""

    incarnation: int
    #: it died when its unit was ending: it has no successor
    last: bool = False
    #: it died, and its successor is to come
    succeeded: bool = False


@value_class(frozen=True)
class Table:
    """The output table of a unit you send to, with the way to each of its sub-units."""

    target: str
    version: int
    pairs: Pairs
    #: incarnation -> (data endpoint, express endpoint, your channel number there); without an endpoint its rows are dropped
    peers: Mapping[int, tuple[str, str, int]]
    #: living sub-units that are not in the table any more: END ends the way to them
    left: tuple[int, ...] = ()
    #: other units that you send to -> the mark that goes to them at the same place among the rows as this table
    marks: Mapping[str, int] = field(default_factory=dict)
    #: of a unit that watermarks go to: who gave keys away -> the newest change in which
    gave: Mapping[int, int] = field(default_factory=dict)


@value_class(frozen=True)
class Connect:
    """The first tables, one for each unit you send to; then say Switched for each."""

    tables: tuple[Table, ...]


@value_class(frozen=True)
class AckRouting:
    """The addresses for acks: express endpoint by incarnation of a root's owner, or the ack servers' by number."""

    version: int
    owners: Mapping[int, str]
    #: (incarnation, endpoint) of each ack server, by number; empty: the ledger sits with the owner
    ackers: tuple[tuple[int, str], ...] = ()
    #: sub-units of the unit that has most of them: windows are wide enough for all of them
    widest: int = 1
    #: name of a spout -> roots that its windows let be under way, all parts together, so that bounded inboxes can fill
    filling: Mapping[str, int] = field(default_factory=dict)
    #: account numbers of replicas that are not whole
    down: tuple[int, ...] = ()
    #: sub-units that are told which roots are done
    mergers: tuple[int, ...] = ()


@value_class(frozen=True)
class Start:
    """Everything is wired: go."""


@value_class(frozen=True)
class Grace:
    """A process died or a channel broke: what is open now is replayed if it is not done within the grace."""

    #: number of an ack server that died and has a successor: what was open there starts anew at once
    acker: int | None = None


@value_class(frozen=True)
class Drain:
    """To spouts: read no more, end as if the source had ended."""

    #: rows that the sub-unit whose place you took had read, if it could be known: what of them was not durable must be read again
    read: int = 0


@value_class(frozen=True)
class BeginReading:
    """To a spout that others are read before: they have ended or caught up, and what they gave is processed."""


@value_class(frozen=True)
class Throttle:
    """Process (a spout: read) so many tuples a second at most, for so many seconds from now; 0 seconds: as many as you can."""

    rate: float
    seconds: float


@value_class(frozen=True)
class Spill:
    """To a bolt with an object per key: hold half of the keys in memory that are there now, and the states of the others on a disk."""


@value_class(frozen=True)
class PeekState:
    """To a bolt: tell the state of these keys, or without keys of those whose text begins so, at most so many; then say PeekedState."""

    number: int
    keys: tuple[Any, ...]
    prefix: str
    limit: int


@value_class(frozen=True)
class SendAgain:
    """To a sub-unit that sends to these places: send dead letters there as roots of its own; then say SentAgain."""

    number: int
    #: (id, place, tuples as the codec packs them) of each; places are those of `Outputs.open_place`
    dead_letters: tuple[tuple[str, str, bytes], ...]


@value_class(frozen=True)
class ReleaseSlices:
    """To a spout that collects windows: these slices of that one go on, in this order; none: say when a window has closed."""

    window: int
    slices: tuple[int, ...]


@value_class(frozen=True)
class Finish:
    """All your unit has ended, or you leave it: finish, see your own roots done, send END; then say Finished."""

    #: the sub-unit leaves while the unit goes on: elements have moved, only what stands for a sub-unit is finished
    leaving: bool = False


@value_class(frozen=True)
class Stop:
    """Close the objects and leave; then say Stopped. `now`: without finishing anything."""

    now: bool = False


# sub-unit or ack server -> unit or driver ---------------------------------------------------------


@value_class(frozen=True)
class CaughtUp:
    """A spout that others are read after has read what was there when it was opened, and that is processed."""

    incarnation: int
    #: how often splits had been assigned to it by then
    assigned: int = 0


@value_class(frozen=True)
class Built:
    """The sub-unit stands and can be reached."""

    incarnation: int
    pid: int
    #: where data frames go
    endpoint: str
    #: where acks and what else must not wait behind data goes
    express: str


@value_class(frozen=True)
class Added:
    """Answer to Add."""

    incarnation: int
    senders: tuple[int, ...]


@value_class(frozen=True)
class Switched:
    """From here on this sub-unit sends to `target` by table `version`."""

    incarnation: int
    target: str
    version: int


@value_class(frozen=True)
class AckRoutingSet:
    """Answer to AckRouting: acks go there from now on."""

    incarnation: int
    version: int


@value_class(frozen=True)
class Ended:
    """A spout has ended and its roots are done; a bolt has read END from all its senders and is empty."""

    incarnation: int


@value_class(frozen=True)
class Finished:
    """Elements finished, own roots done, END sent."""

    incarnation: int


@value_class(frozen=True)
class DumpThreads:
    """Tell the stacks of your threads: nothing is heard of your data loop. The process answers beside it."""

    incarnation: int


@value_class(frozen=True)
class ThreadDump:
    """Stacks of the threads of a process."""

    incarnation: int
    #: the innermost line of code that is not the engine's, as "process, slow.py:12"; empty: all of it is the engine's
    where: str
    #: the stack of each thread, the data loop's first
    text: str


@value_class(frozen=True)
class SendingBegan:
    """The dead letters of a SendAgain have gone out, between two checkpoints."""

    incarnation: int
    number: int
    #: the newest checkpoint that this sub-unit had cut; 0: none. All that are newer hold what comes of them
    checkpoint: int


@value_class(frozen=True)
class SentAgain:
    """Answer to SendAgain: all is processed, and without checkpoints committed."""

    incarnation: int
    number: int
    #: (id, why) of those that were not sent
    refused: tuple[tuple[str, str], ...] = ()


@value_class(frozen=True)
class PeekedState:
    """Answer to PeekState, as it is between two batches."""

    incarnation: int
    number: int
    #: keys with state here, of those that begin so
    count: int
    #: (key, state) as JSON texts
    found: tuple[tuple[str, str], ...]
    #: why it cannot be told
    refused: str = ""


@value_class(frozen=True)
class Failed:
    """The topology must end: user code raised under `fail`, or something that cannot be gone on from."""

    incarnation: int
    unit: str
    #: what went wrong, for people, with the user's traceback where there is one
    text: str
    #: the exception behind it, packed by `pack_cause`; empty where there is none
    cause: bytes = b""
    #: what it was to begin with, from a checkpoint, is damaged: the one before may do
    damaged: bool = False
    #: of a sink or source, and of the kind that passes: it may be answered by a restart
    transient: bool = False


@value_class(frozen=True)
class Broken:
    """Frames from a sender are missing: its channel is broken, its roots must be replayed."""

    incarnation: int
    sender: int
    text: str


@value_class(frozen=True)
class Stopped:
    """The last word of a sub-unit."""

    incarnation: int
    status: Status


# unit <-> unit ---------------------------------------------------------------------------------


@value_class(frozen=True)
class Register:
    """These sub-units of unit `sender` will send to you."""

    sender: str
    incarnations: tuple[int, ...]


@value_class(frozen=True)
class Registered:
    """All sub-units of unit `target` know the sender `incarnation`; this is its table."""

    target: str
    incarnation: int
    table: Table


@value_class(frozen=True)
class Unregister:
    """This sender is dead."""

    incarnation: int
    #: it died when its unit was ending: it has no successor
    last: bool = False


@value_class(frozen=True)
class TableFor:
    """A new table of the unit named in it, for the sender `incarnation`."""

    incarnation: int
    table: Table


@value_class(frozen=True)
class SenderSwitched:
    """The sender `incarnation` sends by this version from now on."""

    incarnation: int
    version: int


# driver <-> keeper -----------------------------------------------------------------------------


@value_class(frozen=True)
class Fork:
    """Start a process for a sub-unit, or for an ack server where `build.unit` is empty."""

    build: Build
    #: no new process: the one of this sub-unit, which is told `build` itself, becomes the new one; 0: a new process
    reused: int = 0


@value_class(frozen=True)
class NotForked:
    """Keeper to driver: no process could be made for this incarnation."""

    incarnation: int
    #: what is missing, and the remedy
    text: str
    #: tries so far, and seconds until the next one; 0: there will be none
    tries: int
    again: float


@value_class(frozen=True)
class Kill:
    """End this incarnation's process at once."""

    incarnation: int


@value_class(frozen=True)
class Release:
    """This incarnation has said its last word: its process ends in order, its slot is free."""

    incarnation: int


@value_class(frozen=True)
class Exited:
    """The process of this incarnation is gone."""

    incarnation: int
    #: such as "killed by signal 9"; for people
    reason: str = ""
    #: its process, where it was known
    process: int = 0
    #: it went with its host, which says nothing of the code that it ran
    with_host: bool = False
