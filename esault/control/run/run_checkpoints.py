"""The checkpoints of one run: the newest complete one, what they cost, and the last one, which ends the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esault.control.checkpoints.checkpoints import Checkpoints, Cut
from esault.control.checkpoints.completed import completed_of
from esault.control.checkpoints.evolution import EvolutionTold
from esault.errors import CheckpointError, FencedError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, NotSnapped, Snapped, StateEvolved
from esault.messages.control import Failed
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.topology.plan import Plan
from esault.topology.sink import Sink, commits_as_one

if TYPE_CHECKING:
    from esault.control.run.driver import Driver
    from esault.control.run.savepoints import SavepointRequests

__all__ = ["RunCheckpoints", "check_sinks"]

#: complete checkpoints that live views tell of
NEWEST = 10
#: times that the last checkpoint is tried before the run ends without it
MOST_LAST = 3
#: seconds after which the same trouble with checkpoints is told again
TELL_AGAIN = 10.0


def check_sinks(plan: Plan, settings: Settings) -> None:
    """Refuse sinks that commit with checkpoints only, where there are none. Raises UsageError."""
    for name, sink in [(each.name, each.sink) for each in plan.sinks]:
        if settings.delivery is not Delivery.EXACTLY_ONCE and commits_as_one(sink) and type(sink).commit is Sink.commit:
            raise UsageError(
                f"sink {name!r}: {type(sink).__name__} commits once for each checkpoint, by commit_all: say how often with --checkpoint "
                "SECONDS, or define commit(self, epoch, handle) as well"
            )


class RunCheckpoints:
    """The checkpoints of one run: it makes complete ones durable, and tells of those that could not be taken."""

    def __init__(
        self,
        driver: Driver,
        completed: CompletedCheckpoint | None = None,
        keep: Callable[[CompletedCheckpoint], None] | None = None,
        last_number: int = 0,
        find: Callable[[], tuple[CompletedCheckpoint | None, list[str]]] | None = None,
    ) -> None:
        """`completed`: the checkpoint to go on from; `keep`, `find` and `last_number` as in `Driver`."""
        self._driver = driver
        #: rows may stand twice in sinks, since a checkpoint with which they had committed was damaged
        self.repeats = completed is not None and completed.repeats
        self._find = find
        self._keep_durable = keep or (lambda completed: None)
        #: the newest complete checkpoint
        self.completed = completed
        #: number of the checkpoint that this run goes on from; 0: it began anew
        self.resumed_from = completed.number if completed is not None else 0
        self.checkpoints = Checkpoints(
            driver.settings.checkpoint_every,
            driver.settings.checkpoint_timeout,
            lambda i, message: driver.outbox.append((i, message)),
            self._keep,
            self.resumed_from,
            self._troubled,
            last_number,
        )
        spouts = [unit.spout for unit in driver.plan.units.values() if unit.spout is not None]
        if driver.settings.checkpoint_every and completed is None and any(spout.moving_start for spout in spouts):
            self.checkpoints.ask()
        #: checkpoints that were completed, bytes that they wrote, and seconds that the last one took
        self.taken = 0
        self.bytes = 0
        #: those of them that hold rows in flight
        self.unaligned = 0
        self.seconds = 0.0
        #: the newest ones: number, when it was complete, seconds that it took, bytes that it wrote, bytes of all that belongs to it
        self.newest_ones: deque[tuple[int, float, float, int, int]] = deque(maxlen=NEWEST)
        self._told: tuple[str, float] = ("", 0.0)
        #: checkpoints one after the other that took longer than the time between them
        self._late = 0
        #: number of the checkpoint that ends the run, and how often it was tried
        self._final: int | None = None
        self._tried = 0
        self._as_one = frozenset(sink.name for sink in driver.plan.sinks if commits_as_one(sink.sink))
        #: what is said of state that other code wrote
        self.evolution = EvolutionTold()
        #: those who want one under a name, where it can be kept
        self.savepoints: SavepointRequests | None = None
        #: from when it is complete until the shell says `committed`: the checkpoint that sinks commit for the whole run
        self.committing: CompletedCheckpoint | None = None

    def handle(self, message: Snapped | NotSnapped | StateEvolved, now: float) -> None:
        """Take what a sub-unit says of its part of a checkpoint, or of the one that it begins with."""
        if isinstance(message, Snapped):
            self.checkpoints.snapped(message, now)
        elif isinstance(message, NotSnapped):
            self.checkpoints.not_snapped(message, now)
        else:
            self.evolution.note(self._driver.unit_of.get(message.incarnation, ""), message)

    def told_to_builds(self) -> dict[str, Any]:
        """Return what a new sub-unit is told of checkpoints: the one that was begun last, and which one all go back to now."""
        driver = self._driver
        if driver.settings.delivery is not Delivery.EXACTLY_ONCE:
            return {}
        goes_on = self.completed is not None or driver.continues is not None
        back = driver.phase == "building" and (driver.epoch > 1 or goes_on)
        number = 0 if self.completed is None else self.completed.number
        return {"checkpoint": self.checkpoints.last_begun, "back_to": number if back else None}

    def _keep(self, cut: Cut) -> None:
        driver = self._driver
        completed = completed_of(
            cut,
            self.checkpoints.chains,
            driver.units,
            driver.run,
            driver.next_incarnation,
            driver.plan.name,
            self.repeats,
            self._as_one,
            0 if self.completed is None else self.completed.number,
        )
        try:
            self._keep_durable(completed)
        except FencedError as error:
            driver.fail(str(error), driver.now)
            raise
        self.completed = completed
        if any(handle.sink in self._as_one for handle in completed.handles):
            self.committing, self.checkpoints.held = completed, True
        for name, unit in driver.units.items():
            if unit.splits is not None:
                unit.splits.checkpoint_kept(completed.units[name].splits)
        self.taken += 1
        self.bytes += completed.size
        self.unaligned += any(unit.in_flight for unit in completed.units.values())
        self.seconds = completed.completed_at - completed.begun_at
        self.newest_ones.append(
            (completed.number, completed.completed_at, self.seconds, completed.size, completed.total_size)
        )
        self._tell_late()
        if self.savepoints is not None:
            self.savepoints.complete(completed)
        driver.restores.completed()
        for name, parts in cut.parts.items():
            driver.units[name].checkpointed({part.incarnation for part in parts if part.ended})

    def _tell_late(self) -> None:
        """Tell the user, once, that checkpoints cannot keep up. The first may: it holds all state, others what changed."""
        every = self._driver.settings.checkpoint_every
        self._late = self._late + 1 if 0 < every < self.seconds else 0
        if self._late == 2:
            self._driver.notices.append(
                f"checkpoints take {self.seconds:.1f} s, and there are to be {every:g} s between them: after a crash so much more is "
                "processed again. More sub-units share the work; --checkpoint with more seconds costs less"
            )

    def _troubled(self, text: str) -> None:
        """Tell the user of a checkpoint that was given up; the run goes on, unless the last one failed too often."""
        driver, now = self._driver, self._driver.now
        if self.savepoints is not None:
            self.savepoints.given_up(text)
        before, at = self._told
        if now - at >= TELL_AGAIN or text != before:
            self._told = (text, now)
            driver.notices.append(f"no checkpoint: {text}")
        if self._final is not None and self._final > self.checkpoints.newest and self._tried >= MOST_LAST:
            driver.fail(f"the last checkpoint could not be taken: {text}", now)

    @property
    def final_completed(self) -> bool:
        """Return whether the checkpoint that ends the run is complete."""
        return self._final is not None and self._final <= self.checkpoints.newest

    def begin_final(self, now: float) -> bool:
        """Begin the last checkpoint, which commits what the ends of units put out; return whether it could begin."""
        if self.checkpoints.current is not None or not self.checkpoints.may_begin(self._driver.units.values()):
            return False
        self._tried += 1
        self._final = self.checkpoints.begin(self._driver.units.values(), now, last=True)
        return True

    def failed(self, message: Failed, now: float) -> None:
        """End the run, unless a piece of the checkpoint that it goes on from is damaged and there is one before."""
        if not (message.damaged and self._fall_back(message, now)):
            self._driver.fail(message.text, now, message.cause)

    def _fall_back(self, failed: Failed, now: float) -> bool:
        """Have all go back to the newest whole checkpoint, since a piece of this one is damaged; False: the run cannot go on."""
        driver = self._driver
        unit = driver.units.get(failed.unit)
        if unit is None or failed.incarnation not in unit.subs:
            return True  # another sub-unit has said so before, and all have gone back
        if self._find is None or self.completed is None or driver.phase != "building":
            return False
        try:
            found, _ = self._find()
        except CheckpointError as error:
            driver.fail(str(error), now)
            return True
        if found is None or found.number >= self.completed.number:
            return False
        before, self.completed, self.repeats = self.completed.number, found, True
        self.checkpoints.newest = found.number
        driver.notices.append(
            f"checkpoint {before} is damaged; rows that sinks committed after {found.number} come once more"
        )
        driver.going_back.begin(failed.text, now)
        return True

    def committed(self, now: float) -> None:
        """Go on: sinks have committed for the whole run."""
        self.committing, self.checkpoints.held = None, False
        self._driver.deliver(now)

    def commit_failed(self, text: str, cause: bytes, transient: bool, now: float) -> float:
        """Have all go back, where the error may pass, and return the seconds until sinks are tried again; else end the run."""
        driver, wait = self._driver, None
        self.committing, self.checkpoints.held = None, False
        if driver.restores.lasting is not None:
            return 0.0  # they are tried again anyway
        if transient and driver.phase == "running":
            wait = driver.restarts.wait("the driver", text, now)
        if wait is None:
            driver.fail(text, now, cause)
        else:
            first = text.partition("\n")[0]
            driver.going_back.begin(f"the driver failed ({first})", now, counted=False)
        driver.deliver(now)
        return wait or 0.0

    def stop(self, at_once: bool) -> None:
        """Take no more checkpoints; `at_once`: nor wait for sinks, which commit when a run goes on from here."""
        self.checkpoints.abandon()
        if at_once:
            self.committing = None

    def go_back(self) -> None:
        """Forget the checkpoint that was to end the run: all go back to the newest complete one."""
        self._final = None
