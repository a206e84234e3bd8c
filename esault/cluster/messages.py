"""Messages between hosts. Each is a frozen dataclass of plain values; `codec` carries no other.

A driver calls a node (`Hello`), asks for slots of a run (`StartHost`) and is told where that run's host process listens; all that concerns the
run then goes over a connection of its own between the driver and the host process (`Attach` ...).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from esault.cluster.slot_messages import SlotShare
from esault.messages.control import Fork, Kill, Release
from esault.messages.probe import HostUsage, ProbeReading
from esault.messages.settings import Settings

__all__ = [
    "ENDED",
    "PROTOCOL",
    "Attach",
    "Attached",
    "ClockReply",
    "ClockRequest",
    "Detach",
    "FromSubUnits",
    "Heartbeat",
    "Hello",
    "HostStarted",
    "MarkText",
    "Member",
    "Nodes",
    "OutputLine",
    "ProbeReadings",
    "ProbeTargets",
    "ProcessDied",
    "ReadMark",
    "Refusal",
    "ShippedFile",
    "StartHost",
    "ToKeeper",
    "ToSubUnit",
    "Welcome",
]

#: changes when one of these messages does
PROTOCOL = 4
#: what `Detach` says when all went well
ENDED = "the run has ended"


# caller <-> node ------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """First on each connection to a node."""

    protocol: int
    esault: str
    #: such as "3.11"
    python: str
    #: the caller is a node with this name and address, which joins; else a driver or a command
    name: str = ""
    address: str = ""


@dataclass(frozen=True)
class Member:
    """A node that is known to belong to the cluster."""

    name: str
    address: str


@dataclass(frozen=True)
class Welcome:
    """Node to caller."""

    name: str
    slots: int
    free: int
    #: what sub-units can find on this host, such as "gpu"
    offers: tuple[str, ...]
    draining: bool
    members: tuple[Member, ...]
    esault: str
    python: str
    #: seconds since the epoch, by this host's clock
    wall: float
    #: the runs that hold slots here
    shares: tuple[SlotShare, ...] = ()
    #: what a slot costs an hour, in any money; None: it was not said
    slot_price: float | None = None


@dataclass(frozen=True)
class Nodes:
    """A node's news to who is connected: members that it knows, and whether it drains."""

    members: tuple[Member, ...]
    draining: bool


@dataclass(frozen=True)
class Refusal:
    """The answer is no; the connection is closed behind it."""

    text: str
    #: asked later, it may be yes
    for_now: bool = False


@dataclass(frozen=True)
class ClockRequest:
    """A question for the time."""

    number: int


@dataclass(frozen=True)
class ClockReply:
    """Answer to Tick: seconds of the host's monotonic clock."""

    number: int
    monotonic: float


@dataclass(frozen=True)
class ReadMark:
    """To a node: what does this mark say? Only files that a run has put into a folder for this are read."""

    path: str


@dataclass(frozen=True)
class MarkText:
    """Answer to Look; None: there is no such file here."""

    text: str | None


@dataclass(frozen=True)
class ShippedFile:
    """One file of the topology's code."""

    #: relative, with slashes
    path: str
    sha256: str
    data: bytes


@dataclass(frozen=True)
class StartHost:
    """Driver to node: room for this run."""

    run: str
    #: the topology's name
    name: str
    slots: int
    #: the topology function, and the shipped file or the module that it is in
    function: str
    path: str | None
    module: str | None
    files: tuple[ShippedFile, ...]
    #: the folder in which the command was started; relative paths mean it, where the host has it
    cwd: str
    params: dict[str, Any]
    settings: Settings
    #: distribution -> version, of what the topology imports
    versions: dict[str, str]
    state_dir: str | None
    #: the driver's clock minus the host's monotonic one
    clock_offset: float
    #: seconds by which the host's own clock is ahead of the driver's
    ahead: float
    #: the run's own key: its processes show it to one another, and get in nowhere else by it
    key: str = field(repr=False)
    #: the lowest level that is logged, as `logging` counts
    log_level: int = 30
    #: who gets slots first where they are short; None: it shares them with no other
    priority: int | None = None


@dataclass(frozen=True)
class HostStarted:
    """Node to driver: the run's host process listens there."""

    run: str
    port: int


# driver <-> host process ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attach:
    """Driver to host process, first: this is my run. Only one connection of a host process's life is let in."""

    run: str


@dataclass(frozen=True)
class Attached:
    """StartHost to driver: sub-units can be forked."""


@dataclass(frozen=True)
class Heartbeat:
    """Both ways, several times a second: I am alive."""


@dataclass(frozen=True)
class ToKeeper:
    """Driver to the host process's keeper."""

    message: Fork | Kill | Release


@dataclass(frozen=True)
class ToSubUnit:
    """Driver to one sub-unit, in order."""

    incarnation: int
    messages: tuple[Any, ...]


@dataclass(frozen=True)
class FromSubUnits:
    """Sub-units to driver, in order."""

    messages: tuple[Any, ...]


@dataclass(frozen=True)
class ProcessDied:
    """StartHost to driver: the process of this incarnation is gone."""

    incarnation: int
    reason: str


@dataclass(frozen=True)
class ProbeTargets:
    """Driver to host process: probe these of your sub-units: incarnation -> (data endpoint, seconds between two probes)."""

    targets: dict[int, tuple[str, float]]
    epoch: int


@dataclass(frozen=True)
class ProbeReadings:
    """StartHost to driver: what probes have found, and how busy the host is."""

    readings: tuple[ProbeReading, ...]
    usage: HostUsage | None


@dataclass(frozen=True)
class OutputLine:
    """StartHost to driver: a line that user code printed, with the sub-unit's mark."""

    mark: str
    text: str


@dataclass(frozen=True)
class Detach:
    """The last word: driver to host process when the run has ended; host process to driver when it cannot go on, and why."""

    text: str = ""
