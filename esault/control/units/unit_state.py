"""The state that the components of a unit share: its sub-units, its output table, and where its messages go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from esault.control.units.measurements import Measurements
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.messages.change_record import ChangeRecord
from esault.messages.control import Build
from esault.routing.table import OutputTable
from esault.topology.plan import UnitPlan

__all__ = ["Component", "Handler", "NoCheckpoints", "RunOfCheckpoints", "UnitState"]

#: takes a message and the time; True: no other component is to see it
Handler = Callable[[Any, float], bool | None]


class RunOfCheckpoints(Protocol):
    """The checkpoints that a change lets pass between two subscales."""

    @property
    def newest(self) -> int:
        """Number of the newest complete one; 0: there is none."""
        ...

    def holds_up(self, behind: int, now: float) -> bool:
        """Return whether a change waits: one is on, or one is late and none was complete since `behind`."""
        ...


class NoCheckpoints:
    """There are none."""

    newest = 0

    def holds_up(self, behind: int, now: float) -> bool:
        return False


class UnitState:
    """The state of one unit.

    `outbox` holds (address, message): an incarnation, ("unit", name) or "keeper". `events` holds what the driver
    must know: "built", "wired", "reachable" (all must know of a sub-unit now), "rescaled" (all must
    know of one that a change has started or stopped, with the others of that change), "settled" (a replacement has taken
    over, or frames were missing, which its text says), "changed", "check" (look whether a change can go on), "finished",
    and ("failed", text).
    """

    def __init__(
        self,
        plan: UnitPlan,
        parallelism: int,
        new_build: Callable[..., Build],
        say: Callable[[Any, float], None] = lambda signal, now: None,
    ) -> None:
        """`say` carries a signal to all components."""
        self.plan = plan
        #: units that its sub-units send to
        self.targets = plan.targets
        self.name = plan.name
        self.parallelism = parallelism
        self.new_build = new_build
        self.say = say
        self.outbox: deque[tuple[Any, Any]] = deque()
        self.events: deque[tuple[str, str]] = deque()
        #: living sub-units by incarnation
        self.subs: dict[int, SubUnitRecord] = {}
        self.table: OutputTable | None = None
        #: (data, express) endpoints of all that were built: a table may name a dead one for a while
        self.endpoints: dict[int, tuple[str, str]] = {}
        self.measurements = Measurements()
        #: changes that have ended, dropped ones included
        self.changes: list[ChangeRecord] = []
        #: (now, parallelism), for the report
        self.history: list[tuple[float, int]] = []
        #: all units have been built and learn of each other
        self.wiring = False
        #: it was chained, and its senders do not send to it yet
        self.joining = False
        #: tuples flow
        self.going = False
        self.draining = False
        self.finishing = False
        #: its objects were finished in the checkpoint that it began with
        self.finished_before = False
        #: the checkpoints of its run
        self.checkpoints: RunOfCheckpoints = NoCheckpoints()

    @property
    def width(self) -> int:
        """The number of sub-units that own a part of the ring."""
        return len(self.table.owners()) if self.table is not None else self.parallelism

    @property
    def keyed(self) -> bool:
        """Return whether rows and state move: by key, or all of them."""
        return self.plan.keyed

    @property
    def moves_rows(self) -> bool:
        """Return whether rows that wait move in a change: by key, all of them, or any."""
        return self.plan.keyed or self.plan.shares_waiting

    def tell(self, incarnation: int, message: Any) -> None:
        """Send to a sub-unit."""
        self.outbox.append((incarnation, message))

    def tell_unit(self, name: str, message: Any) -> None:
        """Send to another unit."""
        self.outbox.append((("unit", name), message))

    def tell_keeper(self, message: Any) -> None:
        """Send to the keeper, which forks and ends processes."""
        self.outbox.append(("keeper", message))

    @property
    def coming_or_going(self) -> bool:
        """Return whether a change has yet to start a sub-unit, or to see one off that waits for no checkpoint."""
        return any(
            (each.joining and each.started_at is None)
            or (each.leaving and not each.stopped and not each.awaits_checkpoint)
            for each in self.subs.values()
        )

    def event(self, kind: str, text: str = "") -> None:
        """Let the driver know."""
        self.events.append((kind, text))


class Component(ABC):
    """A part of a unit that takes messages and signals, and answers through the unit's outbox."""

    @abstractmethod
    def handlers(self) -> Mapping[type, Handler]:
        """Return the handler of each kind of message that this component knows."""

    def handle(self, message: Any, now: float) -> bool:
        """Take a message, and return whether no other component is to see it."""
        handler = self.handlers().get(type(message))
        return handler is not None and handler(message, now) is True
