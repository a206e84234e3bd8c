"""Messages between the command and the processes of a run: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from esault.control.placement.placement import PlacementRules
from esault.messages.checkpoint import CompletedCheckpoint
from esault.messages.control import Build
from esault.messages.settings import Settings
from esault.runtime.process.owner import Owner
from esault.topology.chaining import with_chained
from esault.topology.context import Context
from esault.topology.located import Located
from esault.topology.plan import Plan
from esault.value_class import value_class

if TYPE_CHECKING:
    from esault.cluster.shared import Sharing

__all__ = [
    "ChildSpec",
    "DrainRun",
    "DriverStarted",
    "ForkedChild",
    "HostContext",
    "HostsSpec",
    "KeeperStarted",
    "Leave",
    "Messages",
    "Notice",
    "Pid",
    "RunEnded",
    "RunSpec",
    "StartKeeper",
    "StartRun",
    "StopRun",
    "Wake",
]


@value_class(frozen=True)
class HostsSpec:
    """The hosts of a run, for its driver."""

    #: addresses of nodes, and how many slots the run asks of each
    nodes: tuple[tuple[str, int], ...]
    #: the file of the cluster's key
    key: str
    rules: PlacementRules
    #: slots asked of a node that joins later; 0: all that are free; -1: none take part
    slots_of_newcomers: int
    #: names of these nodes and their addresses: a node may know itself by another address
    names: Mapping[str, str]
    #: addresses of nodes that are full or away, and called while the run goes on
    absent: tuple[str, ...]
    #: what a host must see to take part
    sharing: Sharing
    #: what a slot of each of `nodes` costs an hour, and how many there are
    prices: tuple[tuple[float, int], ...] = ()
    #: the run shares slots with others by this; None: it keeps those that it was given
    priority: int | None = None


@value_class(frozen=True)
class HostContext:
    """On which of several hosts these processes are, and how they reach the others."""

    #: the host's name
    host: str
    #: where to listen for the other hosts
    address: str
    #: the file of the run's own key
    key: str
    #: the file that says until when the driver is known to live, see `lease`
    lease: str


@value_class(frozen=True)
class RunSpec:
    """One run."""

    located: Located
    params: dict[str, Any]
    #: identity, unique over all runs
    run: str
    name: str
    #: the run's own folder: sockets, collected rows
    run_dir: str
    settings: Settings
    owner: Owner
    #: writing end of the console pipe, inherited
    console_fd: int
    host: str = "localhost"
    #: name -> first parallelism, where it is not the topology's
    parallelism: dict[str, int] = field(default_factory=dict)
    slots: int = 16
    #: what scales units by themselves, by name; the empty name stands for all others
    policies: dict[str, str] = field(default_factory=dict)
    #: wall clock minus the monotonic clock at the start, so that all processes agree on the time
    clock_offset: float = 0.0
    #: the command's standard input, inherited; for spouts that read it
    stdin_fd: int | None = None
    #: where checkpoints are kept; None: there are none
    state_dir: str | None = None
    #: the checkpoint to go on from, and the number after which new ones are numbered
    kept: CompletedCheckpoint | None = None
    last_number: int = 0
    #: `kept` was a savepoint
    from_savepoint: bool = False
    #: identity of the state folder; empty: there is none
    lineage: str = ""
    #: the run that this one goes on with, and from which of its checkpoints; None: it begins anew
    continues: tuple[str, int] | None = None
    #: where these processes are, in a run on several hosts
    host_context: HostContext | None = None
    #: the hosts of the run, for the driver of a run on several
    hosts: HostsSpec | None = None
    #: bolts that run in the process of the unit before them
    chained: tuple[str, ...] = ()
    #: the command wants the pages of the timeline
    timeline: bool = False
    #: the file in which what policies have learnt is kept; None: it is not
    learnt: str | None = None

    @property
    def context(self) -> Context:
        """Return what a sink that the driver opens is told."""
        return Context("", host=self.host, run=self.run, lineage=self.lineage or self.run, run_dir=self.run_dir)

    def laid_out(self, plan: Plan) -> Plan:
        """Return the plan as this run has it: with its chained bolts in the units that they run in."""
        return with_chained(plan, self.chained)


# command -> driver


@value_class(frozen=True)
class StartRun:
    """Run this; the keeper forks."""

    spec: RunSpec
    keeper: Any


@value_class(frozen=True)
class DrainRun:
    """End in order."""


@value_class(frozen=True)
class StopRun:
    """End at once."""


# driver -> command


@value_class(frozen=True)
class DriverStarted:
    """The driver's process, so that its death is noticed."""

    process: Owner


@value_class(frozen=True)
class Notice:
    """A line for the user."""

    text: str


@value_class(frozen=True)
class RunEnded:
    """The run has ended; its report."""

    report: Any
    #: the exception of the user's code that ended it, packed; empty where there is none
    cause: bytes = b""


# driver <-> keeper <-> sub-unit


@value_class(frozen=True)
class StartKeeper:
    """Driver to keeper: whose processes these are."""

    spec: RunSpec
    driver: Owner


@value_class(frozen=True)
class KeeperStarted:
    """Keeper to driver: the keeper's process, so that its death is noticed: all others it has forked die with it."""

    process: Owner


@value_class(frozen=True)
class Pid:
    """Driver to keeper: the process of this incarnation."""

    incarnation: int
    pid: int


@value_class(frozen=True)
class ForkedChild:
    """Keeper to driver: where the actor of this incarnation can be reached."""

    incarnation: int
    address: Any


@value_class(frozen=True)
class ChildSpec:
    """Keeper to a new sub-unit, by fork: who it is."""

    spec: RunSpec
    build: Build
    driver: Any


@value_class(frozen=True)
class Wake:
    """Keeper to a new sub-unit: you may begin (an actor cannot send before its first message)."""


@value_class(frozen=True)
class Messages:
    """Several control messages in one, in order."""

    messages: tuple[Any, ...]
    #: of a sub-unit: its process, and how many it had for the same actor by the last of these, so that reports find their places
    process: int = 0
    count: int = 0


@value_class(frozen=True)
class Leave:
    """Driver to keeper: all is over."""
