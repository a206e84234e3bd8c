"""The driver: owns the topology, its units, and the run from building to the last word.

```
building -> wiring -> beginning -> running -> stopping -> ended
```

`building`: sub-units are forked and built. `wiring`: senders are registered and get their tables. `beginning`: whoever drives
this core prepares the sinks and says `begun`. `running` ends when every unit has finished, or with a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from esault.control.ack_seats import AckSeats
from esault.control.checkpoints import Checkpoints, Cut
from esault.control.elastic_unit import ElasticUnit
from esault.control.elasticity.scaling import EVERY_UNIT, Scaling
from esault.control.lost_tails import LostTails
from esault.control.resources import OneHost, Resources, Slot
from esault.errors import UsageError
from esault.messages.checkpoint import Restore, Snapped
from esault.messages.control import Broken, Build, Built, Exited, Failed, Grace, Kill, Seated, Stopped
from esault.messages.probe import HostUsage
from esault.messages.settings import Settings
from esault.messages.status import Status
from esault.routing.table import OutputTable
from esault.topology.plan import Plan

__all__ = ["Driver"]

#: seconds that sub-units get to stop before they are killed: in order, and at once
STOP_PATIENCE, STOP_AT_ONCE_PATIENCE = 30.0, 2.0
#: seconds until a checkpoint that is not complete is given up
CHECKPOINT_PATIENCE = 30.0
#: times that all go back without a checkpoint completed in between
MOST_IN_VAIN = 3
#: seconds without a word from a sub-unit after which the user is told
SILENCE = 5.0


class Driver:
    """The core of the driver's actor. `outbox` holds (address, message): an incarnation or "keeper"."""

    def __init__(
        self,
        plan: Plan,
        run: str,
        host: str,
        settings: Settings,
        parallelism: Mapping[str, int] | None = None,
        epoch: int = 1,
        slots: int = 16,
        policies: Mapping[str, str] | None = None,
        probes: str = "",
    ) -> None:
        """`policies`: what scales units by themselves, by name; `probes`: where answers to probes go.

        Raises UsageError for policies that cannot be.
        """
        self.plan = plan
        self.run = run
        self._host = host
        self.settings = replace(settings, replay_after=plan.replay_after)
        self.epoch = epoch
        #: places for sub-units
        self.resources: Resources = OneHost(host, slots)
        self._slots: dict[int, Slot] = {}
        self._probes = probes
        #: how busy hosts are, as far as the runtime can tell
        self.hosts: tuple[HostUsage, ...] = ()
        self.outbox: deque[tuple[Any, Any]] = deque()
        self.phase = "building"
        #: what ended the run, for people; None while all is well
        self.failure: str | None = None
        self.draining = False
        #: the run ended because every unit had finished
        self.finished_in_order = False
        #: lines for the user: deaths, silences
        self.notices: deque[str] = deque()
        self._next_incarnation = 1
        self._unit_of: dict[int, str] = {}
        chosen = parallelism or {}
        self.units: dict[str, ElasticUnit] = {
            name: ElasticUnit(plan, unit, chosen.get(name, unit.parallelism), self._new_build)
            for name, unit in plan.units.items()
        }
        for unit in self.units.values():
            unit.exactly = self._exactly
        self.scaling = Scaling(plan, policies or {EVERY_UNIT: "none"}, settings.probe_every, self.notices.append)
        for name in self.scaling.halved:
            self.units[name].first_table = OutputTable.halved
        ackers = settings.ackers if settings.delivery != "none" else 0
        self._ack_seats = AckSeats(ackers, self._new_build, self.outbox)
        self._lost_tails = LostTails()
        self.checkpoints = Checkpoints(
            settings.checkpoint_every,
            CHECKPOINT_PATIENCE,
            lambda i, message: self.outbox.append((i, message)),
            self._keep,
        )
        #: checkpoints that are complete
        self.kept: list[Cut] = []
        #: what everybody has gone back to, when, and how often since the last complete one
        self.restored: Cut | None = None
        self.restores: list[float] = []
        self._in_vain = 0
        #: number of the checkpoint that ends the run
        self._final: int | None = None
        self._deadline: float | None = None
        self._killed = False
        self._heard: dict[int, float] = {}
        self._silent: set[int] = set()
        self.started_at = 0.0
        self.running_since: float | None = None
        self.ended_at: float | None = None
        self.deaths = 0

    def _new_build(self, unit: str, **fields: Any) -> Build:
        incarnation = self._next_incarnation
        self._next_incarnation += 1
        self._unit_of[incarnation] = unit
        return Build(
            unit=unit,
            incarnation=incarnation,
            epoch=self.epoch,
            host=self._host,
            run=self.run,
            settings=self.settings,
            probes=self._probes,
            **fields,
        )

    # starting --------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin to build."""
        self.started_at = now
        self._ack_seats.start()
        for unit in self.units.values():
            unit.start(now)
        self._deliver(now)

    def begun(self, now: float) -> None:
        """The sinks are ready: let tuples flow."""
        if self.phase != "beginning":
            return
        self.phase = "running"
        self.running_since = now
        self._send_seats()
        for unit in self.units.values():
            unit.go(now)
        self._deliver(now)

    def _send_seats(self, newcomer: bool = False) -> None:
        owners = {
            r.incarnation: r.built.express for u in self.units.values() for r in u.subs.values() if r.built is not None
        }
        widest = max((len(u.subs) for u in self.units.values() if u.plan.kind == "bolt"), default=1)
        self._ack_seats.tell(owners, widest, newcomer)

    def _check_seats(self) -> None:
        """Once nobody sends acks to a dead ack server any more, what was open there starts anew."""
        for number in self._ack_seats.recovered(i for unit in self.units.values() for i in unit.subs):
            self._tell_all(Grace(acker=number))

    def _tell_all(self, message: Any) -> None:
        for unit in self.units.values():
            for record in unit.subs.values():
                if record.started_at is not None:
                    self.outbox.append((record.incarnation, message))

    # messages --------------------------------------------------------------------------------------

    def handle(self, message: Any, now: float) -> bool:
        """Take a message from a sub-unit, an ack server or the keeper; False if nobody here knows it."""
        known = True
        incarnation = getattr(message, "incarnation", None)
        if incarnation is not None:
            self._heard[incarnation] = now
            self._silent.discard(incarnation)
        if isinstance(message, Exited):
            self._on_exited(message, now)
        elif isinstance(message, Seated):
            self._ack_seats.seated(message.incarnation, message.version)
            self._check_seats()
        elif isinstance(message, Failed):
            self.fail(message.text, now)
        elif isinstance(message, Snapped):
            self._on_snapped(message)
        elif isinstance(message, Broken) and self._exactly:
            self._on_broken(message, now)
        elif isinstance(message, (Built, Stopped)) and not self._unit_of.get(message.incarnation, "?"):
            self._on_ack_server(message)
        else:
            unit = self.units.get(self._unit_of.get(incarnation, ""))  # type: ignore[arg-type]
            known = unit is not None and unit.handle(message, now)
            if isinstance(message, Status):
                self.scaling.sampler.status(message)
            if isinstance(message, Stopped):
                self._check_seats()
        self._deliver(now)
        return known

    def _on_ack_server(self, message: Any) -> None:
        if isinstance(message, Built):
            self._ack_seats.built(message.incarnation, message.express)
            if self.phase == "running":
                self._send_seats(newcomer=True)

    def _on_exited(self, message: Exited, now: float) -> None:
        name = self._unit_of.get(message.incarnation)
        self._heard.pop(message.incarnation, None)
        self._silent.discard(message.incarnation)
        if name is None or self.phase in ("stopping", "ended"):
            if name:
                self.units[name].subs.pop(message.incarnation, None)
            return
        if name:
            unit = self.units[name]
            record = unit.subs.get(message.incarnation)
            if record is None or record.stopped:
                return
            self.deaths += 1
            self.notices.append(f"{name}/{message.incarnation} died ({message.reason or 'no reason known'})")
            if self._exactly and self.phase != "building":
                self._restore(f"{name}/{message.incarnation} died", now)
                return
            unit.died(message.incarnation, message.reason, now)
            self._check_seats()
            return
        number = self._ack_seats.died(message.incarnation)
        if number is not None:
            self.deaths += 1
            self.notices.append(f"ack server {number} died ({message.reason or 'no reason known'})")

    def _deliver(self, now: float) -> None:
        """Carry messages between the units, which share this process, until all is quiet; then act on their events."""
        moved = True
        while moved:
            moved = False
            for unit in self.units.values():
                while unit.outbox:
                    moved = True
                    address, message = unit.outbox.popleft()
                    if isinstance(address, tuple):
                        self.units[address[1]].handle(message, now)
                    else:
                        self.outbox.append((address, message))
                while unit.events:
                    moved = True
                    self._on_event(unit, *unit.events.popleft(), now)
            moved = self._advance(now) or moved
        self._settle_slots()

    def _free_slots(self) -> int:
        self._settle_slots()
        return self.resources.free

    def _settle_slots(self) -> None:
        """Who is gone gives the slot back, who is new gets one: a change has seen to it before that there are enough."""
        living = {incarnation for unit in self.units.values() for incarnation in unit.subs}
        gone = [incarnation for incarnation in self._slots if incarnation not in living]
        self.resources.release(self._slots.pop(incarnation) for incarnation in gone)
        new = [incarnation for incarnation in living if incarnation not in self._slots]
        self._slots.update(zip(new, self.resources.allocate(len(new))))

    def _on_event(self, unit: ElasticUnit, event: str, text: str, now: float) -> None:
        if event == "failed":
            self.fail(text, now)
        elif event == "check":
            unit.check(now)
        elif event == "changed":
            self.scaling.changed(unit.name, unit.changes[-1])
        elif event == "seats" and self.phase == "running":
            self._send_seats()
        elif event == "settled" and self.phase == "running" and self.settings.delivery != "none":
            self._tell_all(Grace())

    def _advance(self, now: float) -> bool:
        units = self.units.values()
        if self.phase == "building" and all(u.table is not None for u in units):
            if not self._ack_seats.ready:
                return False
            self.phase = "wiring"
            for unit in units:
                unit.register()
            return True
        if self.phase == "wiring" and all(u.wired for u in units):
            self.phase = "beginning"
            return True
        if self.phase == "running" and all(u.finishing and all(r.finished for r in u.subs.values()) for u in units):
            if self._exactly and (self._final is None or self._final > self.checkpoints.newest):
                return self._begin_final(now)
            self.finished_in_order = True
            self._stop(False, now)
            return True
        if self.phase == "stopping" and all(u.all_stopped for u in units):
            self.phase = "ended"
            self.ended_at = now
            self._ack_seats.stop()
            return True
        return False

    # changes -----------------------------------------------------------------------------------------

    def elastic(self, name: str, more: int = 0) -> ElasticUnit:
        """The unit, for a change that needs so many more slots. Raises UsageError with one clear line."""
        unit = self.units.get(name)
        if unit is None:
            raise UsageError(f"there is no unit {name!r}; there are: {', '.join(self.units)}")
        if self.phase != "running" or self.draining:
            raise UsageError(f"{self.plan.name} is not running (any more): it cannot be changed")
        if self.checkpoints.current is not None:
            raise UsageError(f"unit {name!r} cannot be changed now: a checkpoint is being taken; try again in a moment")
        if more > self.resources.free:
            free, total = self.resources.free, self.resources.total
            raise UsageError(f"unit {name!r} would need {more} more slots, and {free} of {total} are free")
        return unit

    def scale(self, name: str, n: int, now: float, reason: str = "", policy: str = "by hand") -> None:
        """Give a unit n sub-units with equal shares. Raises UsageError; nothing is changed then."""
        unit = self.elastic(name)
        if n >= 1:
            unit.check_wish(n)
        self.elastic(name, max(0, n - unit.width)).rescale(n, now, reason, policy)
        self._deliver(now)

    def split(self, name: str, owner: int, now: float, at: int | None = None) -> None:
        """A new sub-unit takes half of the owner's. Raises UsageError."""
        self.elastic(name, 1).split(owner, now, at)
        self._deliver(now)

    def merge(self, name: str, owner: int, now: float) -> None:
        """The owner's part goes to its neighbours. Raises UsageError."""
        self.elastic(name).merge(owner, now)
        self._deliver(now)

    def move(self, name: str, owner: int, now: float) -> None:
        """A new sub-unit takes the owner's place. Raises UsageError."""
        self.elastic(name, 1).move(owner, now)
        self._deliver(now)

    def change(self, name: str, kind: str, owner: int | None, now: float) -> None:
        """Split, merge or move one sub-unit; None: the last one on the ring. Raises UsageError."""
        calls = {"split": self.split, "merge": self.merge, "move": self.move}
        if kind not in calls:
            raise UsageError(f"there is no change {kind!r}; there are: {', '.join(calls)}")
        table = self.elastic(name).table
        calls[kind](name, table.owners()[-1] if owner is None and table is not None else owner or 0, now)

    def checkpoint(self, now: float) -> int:
        """Begin a checkpoint; its number. Raises UsageError when it cannot be now."""
        if (
            self.phase != "running"
            or self.checkpoints.current is not None
            or not self.checkpoints.may_begin(self.units.values())
        ):
            raise UsageError(
                f"{self.plan.name}: no checkpoint can be taken now: a change, a death or the end is being dealt with"
            )
        number = self.checkpoints.begin(self.units.values(), now)
        self._deliver(now)
        return number

    def _keep(self, cut: Cut) -> None:
        self.kept.append(cut)
        self._in_vain = 0

    def _on_snapped(self, message: Snapped) -> None:
        before = self.checkpoints.newest
        self.checkpoints.snapped(message)
        if self.checkpoints.newest != before:
            for name, parts in self.kept[-1].parts.items():
                self.units[name].checkpointed({part.incarnation for part in parts if part.ended})

    def _begin_final(self, now: float) -> bool:
        """The last checkpoint: with it what the ends of units put out is committed."""
        if self.checkpoints.current is not None:
            return False
        self._final = self.checkpoints.begin(self.units.values(), now)
        return True

    # going back ------------------------------------------------------------------------------------

    @property
    def _exactly(self) -> bool:
        return self.settings.delivery == "eo"

    def _on_broken(self, message: Broken, now: float) -> None:
        unit = self.units.get(self._unit_of.get(message.incarnation, ""))
        if unit is not None and message.incarnation in unit.subs and message.sender in unit.senders:
            self._restore(f"{unit.name}/{message.incarnation} missed frames ({message.text})", now)

    def _restore(self, why: str, now: float) -> None:
        """All go back to the newest complete checkpoint (PROTOCOL section 7): other processes, its state, its positions."""
        if self.phase in ("stopping", "ended"):
            return
        self.checkpoints.abandon()
        self._in_vain += 1
        if self._in_vain > MOST_IN_VAIN:
            self.fail(
                f"{MOST_IN_VAIN} times in a row everything went back to a checkpoint and none was completed since: {why}",
                now,
            )
            return
        cut = self.restored = self.kept[-1] if self.kept else None
        self.restores.append(now)
        self.notices.append(
            f"{why}: all go back to {f'checkpoint {cut.number}' if cut is not None else 'the beginning'}"
        )
        self.epoch += 1
        self._final = None
        for unit in self.units.values():
            for incarnation in unit.subs:
                self.outbox.append(("keeper", Kill(incarnation)))
        self._ack_seats.kill()
        self._ack_seats.start()
        old, self.units = self.units, {}
        for name, before in old.items():
            unit = self.units[name] = before.successor()
            if cut is None:
                unit.start(now)
                continue
            parts = cut.parts.get(name, [])
            unit.positions({cut.places[part.incarnation]: part.position for part in parts if part.position is not None})
            unit.start(now, self._restores_of(before, parts, cut.number))
        self.phase = "building"

    def _restores_of(self, unit: ElasticUnit, parts: list[Snapped], number: int) -> dict[int, Restore]:
        """What each sub-unit of the successor begins with, by part."""
        chains = tuple(tuple(chain) for chain in self.checkpoints.chains.get(unit.name, {}).values())
        finished = bool(parts) and all(part.finished for part in parts)
        return {part: Restore(number, chains, ranges, finished) for part, ranges in unit.ranges_by_part().items()}

    def probe_targets(self) -> dict[int, tuple[str, float]]:
        """Whom to probe now: incarnation -> (data endpoint, seconds between two probes)."""
        return self.scaling.targets(self.units) if self.phase == "running" and not self.draining else {}

    # the end ---------------------------------------------------------------------------------------

    def drain(self, now: float) -> None:
        """End as if the spouts had ended: what is in flight is processed."""
        if self.draining:
            return
        self.draining = True
        if self.phase in ("building", "wiring", "beginning"):
            self._stop(True, now)
        else:
            for unit in self.units.values():
                unit.drain()
        self._deliver(now)

    def stop_at_once(self, now: float) -> None:
        """End without draining; what is in flight is lost."""
        self._stop(True, now)
        self._deliver(now)

    def fail(self, text: str, now: float) -> None:
        """End with this failure; the first one counts."""
        if self.failure is None and self.phase != "ended":
            self.failure = text
            self._stop(True, now)

    def _stop(self, at_once: bool, now: float) -> None:
        if self.phase == "ended":
            return
        again = self.phase == "stopping"
        self.phase = "stopping"
        patience = STOP_AT_ONCE_PATIENCE if at_once else STOP_PATIENCE
        self._deadline = min(self._deadline or now + patience, now + patience)
        if not again or at_once:
            for unit in self.units.values():
                unit.stop(at_once)

    def tick(self, now: float) -> None:
        """Called a few times a second: deadlines and silences."""
        if self.phase == "stopping" and self._deadline is not None and now >= self._deadline:
            for unit in self.units.values():
                for record in list(unit.subs.values()):
                    if not record.stopped:
                        self.outbox.append(("keeper", Kill(record.incarnation)))
                        unit.subs.pop(record.incarnation, None)
                        unit.measurements.died(record.incarnation)
        if self.phase == "running":
            self.checkpoints.tick(self.units.values(), now)
        if self.phase == "running" and not self.draining:
            since = now - (self.running_since or now)
            self.scaling.decide(self.units, now, since, self.hosts, self._free_slots)
        if self.phase == "running":
            for _, receiver, sender, text in list(self._lost_tails.find(self.units, now)):
                self.handle(Broken(receiver, sender, text), now)
            for unit in self.units.values():
                for record in unit.subs.values():
                    heard = self._heard.get(record.incarnation, now)
                    if now - heard > SILENCE and record.incarnation not in self._silent:
                        self._silent.add(record.incarnation)
                        self.notices.append(
                            f"no word from {unit.name}/{record.incarnation} for {SILENCE:.0f} s: user code that does not "
                            "return, or a frozen process"
                        )
        self._deliver(now)
