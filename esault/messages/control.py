"""All control messages, by who says them to whom.

Incarnations are integers that are never used twice in a run; a message names the sub-unit it speaks of by its
incarnation, so that one that comes late speaks of a life that is over and can do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from esault.messages.probe import KeyLoad, Usage
from esault.messages.settings import Settings

__all__ = [
    "Add",
    "Added",
    "Broken",
    "Build",
    "Built",
    "Cancel",
    "Connect",
    "Drain",
    "EndRead",
    "Ended",
    "Exited",
    "Failed",
    "Finish",
    "Finished",
    "Fork",
    "Get",
    "Give",
    "GiveTo",
    "Given",
    "Gone",
    "Grace",
    "Installed",
    "Kill",
    "Leave",
    "Leaving",
    "Left",
    "LostGiver",
    "Pairs",
    "Ranges",
    "Ready",
    "Register",
    "Registered",
    "Release",
    "Rows",
    "Seated",
    "Seats",
    "SenderSwitched",
    "Start",
    "Status",
    "Stop",
    "Stopped",
    "Switched",
    "Table",
    "TableFor",
    "Unregister",
]

#: ((first ring position, incarnation), ...), sorted: a snapshot of an output table
Pairs = tuple[tuple[int, int], ...]


# unit -> sub-unit ------------------------------------------------------------------------------


@dataclass(frozen=True)
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
    #: for a spout: where to go on, packed by the codec; None from the start
    position: bytes | None = None
    #: True for a sub-unit that takes the place of one that died
    replacement: bool = False
    #: where answers to probes go; empty: there are no probes
    probes: str = ""


@dataclass(frozen=True)
class Add:
    """These senders will send to you: (incarnation, channel number)."""

    senders: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Gone:
    """This sender is dead: what it sent and you have not read is dropped; it counts as every barrier and END."""

    incarnation: int
    #: it died when its unit was ending: it has no successor
    last: bool = False


@dataclass(frozen=True)
class Table:
    """The output table of a unit you send to, with the way to each of its sub-units."""

    target: str
    version: int
    pairs: Pairs
    #: incarnation -> (data endpoint, express endpoint, your channel number there)
    peers: Mapping[int, tuple[str, str, int]]
    #: living sub-units that are not in the table any more: END ends the way to them
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class Connect:
    """The first tables, one for each unit you send to; then say Switched for each."""

    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Seats:
    """Where acks go: express endpoint by incarnation of a root's owner, or the ack servers' by number."""

    version: int
    owners: Mapping[int, str]
    #: (incarnation, endpoint) of each ack server, by number; empty: the ledger sits with the owner
    ackers: tuple[tuple[int, str], ...] = ()
    #: sub-units of the unit that has most of them: windows are wide enough for all of them
    widest: int = 1


@dataclass(frozen=True)
class Start:
    """Everything is wired: go."""


@dataclass(frozen=True)
class Grace:
    """A process died or a channel broke: what is open now is replayed if it is not done within the grace."""

    #: number of an ack server that died and has a successor: what was open there starts anew at once
    acker: int | None = None


@dataclass(frozen=True)
class Drain:
    """To spouts: read no more, end as if the source had ended."""


@dataclass(frozen=True)
class Finish:
    """All your unit has ended, or you leave it: finish, see your own roots done, send END; then say Finished."""

    #: the sub-unit leaves while the unit goes on: elements have moved, only what stands for a sub-unit is finished
    leaving: bool = False


@dataclass(frozen=True)
class Stop:
    """Close the objects and leave; then say Stopped. `now`: without finishing anything."""

    now: bool = False


# a change: unit -> sub-unit ------------------------------------------------------------------------

#: ((first place, last place, incarnation), ...)
Ranges = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Get:
    """To a new owner: hold rows of these ranges from now on; they come from the incarnations named."""

    version: int
    moves: Ranges
    #: old owner -> its express endpoint
    olds: Mapping[int, str]
    #: all rows move: the unit has one object, or the getter is new and gets from this one alone
    everything: bool = False


@dataclass(frozen=True)
class Give:
    """To an old owner: carry rows of these ranges from now on, give them and their state to the incarnations named."""

    version: int
    moves: Ranges
    #: new owner -> its express endpoint
    news: Mapping[int, str]
    #: senders that may still send by an older table
    senders: tuple[int, ...]
    everything: bool = False


@dataclass(frozen=True)
class GiveTo:
    """To an old owner: a new owner died; this one takes its place in the change."""

    version: int
    dead: int
    new: int
    express: str


@dataclass(frozen=True)
class LostGiver:
    """To a new owner: this old owner died; what has not come from it will not."""

    version: int
    old: int


@dataclass(frozen=True)
class Leave:
    """A change has taken your ranges: no new senders will come; say Ended when those you know have ended or are gone."""


@dataclass(frozen=True)
class Cancel:
    """To a new owner: the change was dropped."""

    version: int


# a change: sub-unit -> unit ------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    """Answer to Get."""

    incarnation: int
    version: int


@dataclass(frozen=True)
class Installed:
    """A new owner has all that was to come."""

    incarnation: int
    version: int
    moved_keys: int = 0
    moved_bytes: int = 0
    #: seconds that a row of a moved key was held at most
    held: float = 0.0


@dataclass(frozen=True)
class Given:
    """An old owner has given everything and it was confirmed."""

    incarnation: int
    version: int
    #: to whom: the successor of a new owner that died may not be among them
    news: tuple[int, ...] = ()
    moved_keys: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True)
class EndRead:
    """A receiver has read END from this sender."""

    incarnation: int
    sender: int


@dataclass(frozen=True)
class Leaving:
    """Unit to the units it sends to: this sender has sent END; say Left when all have read it."""

    incarnation: int


@dataclass(frozen=True)
class Left:
    """Answer to Leaving."""

    target: str
    incarnation: int


# sub-unit or ack server -> unit or driver ---------------------------------------------------------


@dataclass(frozen=True)
class Built:
    """The sub-unit stands and can be reached."""

    incarnation: int
    pid: int
    #: where data frames go
    endpoint: str
    #: where acks and what else must not wait behind data goes
    express: str


@dataclass(frozen=True)
class Added:
    """Answer to Add."""

    incarnation: int
    senders: tuple[int, ...]


@dataclass(frozen=True)
class Switched:
    """From here on this sub-unit sends to `target` by table `version`."""

    incarnation: int
    target: str
    version: int


@dataclass(frozen=True)
class Seated:
    """Answer to Seats: acks go there from now on."""

    incarnation: int
    version: int


@dataclass(frozen=True)
class Ended:
    """A spout has ended and its roots are done; a bolt has read END from all its senders and is empty."""

    incarnation: int


@dataclass(frozen=True)
class Finished:
    """Elements finished, own roots done, END sent."""

    incarnation: int


@dataclass(frozen=True)
class Failed:
    """The topology must end: user code raised under `fail`, or something that cannot be gone on from."""

    incarnation: int
    unit: str
    #: what went wrong, for people, with the user's traceback where there is one
    text: str


@dataclass(frozen=True)
class Broken:
    """Frames from a sender are missing: its channel is broken, its roots must be replayed."""

    incarnation: int
    sender: int
    text: str


@dataclass(frozen=True)
class Rows:
    """Counts of one sub-unit, cumulative over its life unless said otherwise."""

    tuples_in: int = 0
    tuples_out: int = 0
    #: tuples read from the channels
    arrivals: int = 0
    errors: int = 0
    dead_letters: int = 0
    misrouted: int = 0
    dropped_frames: int = 0
    #: seconds spent in user code and the engine's work on batches, without waiting
    busy: float = 0.0
    #: tuples waiting in the inbox, now
    backlog: int = 0
    #: elements with state, now
    elements: int = 0
    #: of a spout: seconds in which it was not asked for more because its window was closed
    throttled: float = 0.0
    roots_emitted: int = 0
    roots_acked: int = 0
    roots_replayed: int = 0
    roots_failed: int = 0
    roots_open: int = 0


@dataclass(frozen=True)
class Status:
    """What a sub-unit measured; sent a few times a second and once at the end."""

    incarnation: int
    now: float
    rows: Rows
    #: snapshots of histograms: what a tuple waited and was worked on here; from due to done at the last unit
    latency: Any = None
    end_to_end: Any = None
    #: of a spout: position before which all is durable, packed; None without
    position: bytes | None = None
    #: of a spout: (done, total) where the source knows
    progress: tuple[float, float] | None = None
    #: of a spout: tuples that are due and have not been read, where the source knows
    lag: int | None = None
    #: what the process takes from its host, where the runtime can tell
    usage: Usage | None = None
    #: of a bolt: where its tuples fall on the ring
    key_load: KeyLoad | None = None
    #: channel -> last seq sent / seen, so that a lost tail is found
    sent: Mapping[int, int] = field(default_factory=dict)
    seen: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stopped:
    """The last word of a sub-unit."""

    incarnation: int
    status: Status


# unit <-> unit ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Register:
    """These sub-units of unit `sender` will send to you."""

    sender: str
    incarnations: tuple[int, ...]


@dataclass(frozen=True)
class Registered:
    """All sub-units of unit `target` know the sender `incarnation`; this is its table."""

    target: str
    incarnation: int
    table: Table


@dataclass(frozen=True)
class Unregister:
    """This sender is dead."""

    incarnation: int
    #: it died when its unit was ending: it has no successor
    last: bool = False


@dataclass(frozen=True)
class TableFor:
    """A new table of the unit named in it, for the sender `incarnation`."""

    incarnation: int
    table: Table


@dataclass(frozen=True)
class SenderSwitched:
    """The sender `incarnation` sends by this version from now on."""

    incarnation: int
    version: int


# driver <-> keeper -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fork:
    """Start a process for a sub-unit, or for an ack server where `build.unit` is empty."""

    build: Build


@dataclass(frozen=True)
class Kill:
    """End this incarnation's process at once."""

    incarnation: int


@dataclass(frozen=True)
class Release:
    """This incarnation has said its last word: its process ends in order, its slot is free."""

    incarnation: int


@dataclass(frozen=True)
class Exited:
    """The process of this incarnation is gone."""

    incarnation: int
    #: such as "killed by signal 9"; for people
    reason: str = ""
