"""The driver: owns the topology, its units, and the run from building to the last word.

```
building -> wiring -> beginning -> running -> stopping -> ended
```

`building`: sub-units are forked and built. `wiring`: senders are registered and get their tables. `beginning`: the caller
prepares the sinks and says `begun`. `running` ends when every unit has finished, or with a failure. These phases are one
thing, and so are in one module; commands, checkpoints, ackers, lost frames and others are parts of their own.

It is one module of over 300 lines: the phases of a run follow one another here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from esault.control.checkpoints.completed import table_like, widths
from esault.control.checkpoints.recovery import Recovery
from esault.control.placement.resources import OneHost, Places, Resources, slot_request_of
from esault.control.replication.replicas import make_units
from esault.control.run.ack_routing_updates import AckRoutingUpdates
from esault.control.run.acker_assignment import AckerAssignment
from esault.control.run.commands import Commands
from esault.control.run.going_back import GoingBack
from esault.control.run.lost_frames import LostFrames
from esault.control.run.pipeline_driver import PipelineDriver
from esault.control.run.reader_scaling import ReaderScaling
from esault.control.run.restarts import Restarts
from esault.control.run.run_checkpoints import RunCheckpoints
from esault.control.run.slow_sinks import SlowSinks
from esault.control.run.spout_order import SpoutOrder
from esault.control.run.unchaining import Unchaining
from esault.control.run.unforked import Unforked
from esault.control.run.unresponsive import Unresponsive
from esault.control.units.unit import Unit
from esault.elasticity.budget import Budget
from esault.elasticity.judge import Ask
from esault.elasticity.scaling import EVERY_UNIT, FIRST_EVERY, Scaling
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, NotSnapped, Snapped, StateEvolved
from esault.messages.control import AckRoutingSet, Broken, Build, Built, Exited, Failed, Grace, Kill, NotForked, Stopped
from esault.messages.delivery import Delivery
from esault.messages.probe import HostUsage
from esault.messages.settings import Settings
from esault.messages.status import Status
from esault.routing.table import OutputTable
from esault.topology.plan import Plan

__all__ = ["Driver"]

#: seconds that sub-units get to stop before they are killed: in order, and at once
STOP_PATIENCE, STOP_AT_ONCE_PATIENCE = 30.0, 2.0


class Driver:
    """The core of the driver's actor. `outbox` holds (address, message): an incarnation or "keeper"."""

    def __init__(
        self,
        *,
        plan: Plan,
        run: str,
        host: str,
        settings: Settings,
        parallelism: Mapping[str, int] | None = None,
        epoch: int = 1,
        slots: int = 16,
        policies: Mapping[str, str] | None = None,
        probes: str = "",
        completed: CompletedCheckpoint | None = None,
        keep: Callable[[CompletedCheckpoint], None] | None = None,
        last_number: int = 0,
        find: Callable[[], tuple[CompletedCheckpoint | None, list[str]]] | None = None,
        ask: Ask | None = None,
        resources: Resources | None = None,
        lineage: str = "",
        continues: tuple[str, int] | None = None,
    ) -> None:
        """`policies`: what scales units by themselves, by name; `probes`: where answers to probes go.

        `completed`: the checkpoint to go on from; `keep` makes one durable, and raises CheckpointError where it cannot; `last_number`:
        after which new ones are numbered; `find` looks for the newest whole one; `ask` calls a policy with a limit of time; `resources`: other slots than this host's;
        `continues`: the run that this one goes on with, and from which of its checkpoints; None: it begins anew. Raises UsageError.
        """
        self.plan = plan
        self.run = run
        self._lineage, self.continues = lineage, continues
        self.settings = replace(settings, replay_after=plan.replay_after)
        self.epoch = epoch
        self.resources = resources or OneHost(host, slots)  # places for sub-units
        self.places = Places(self.resources, Budget(settings.budget, settings.hourly_budget))
        self._probes = probes
        self.hosts: tuple[HostUsage, ...] = ()  # how busy they are, as far as the runtime can tell
        self.outbox: deque[tuple[Any, Any]] = deque()
        self.phase = "building"
        self.failure: str | None = None  # what ended the run, for people
        self.cause = b""  # the exception behind it, packed
        self.draining = False
        self.finished_in_order = False  # the run ended because every unit had finished
        self.paused = False  # the run was ended by hand, at a checkpoint: another one may go on
        self.now = 0.0  # the time of the last call, for what is told
        self.notices: deque[str] = deque()  # lines for the user: deaths, processes that do not answer
        self.next_incarnation = completed.next_incarnation if completed is not None else 1
        #: by incarnation; empty: an ack server
        self.unit_of: dict[int, str] = {}
        chosen = {**(widths(completed, plan) if completed is not None else {}), **(parallelism or {})}
        self.units = make_units(plan, chosen, self.settings, self._new_build)
        for unit in self.units.values():
            unit.be_exact(self._exactly)
            if self._exactly and unit.plan.batch and unit.plan.objects == "partial_key":
                raise UsageError(
                    f"unit {unit.name!r} is a BatchBolt behind partial_key: its two halves of a key cannot be told apart in a "
                    "checkpoint; group it by_key, make it a Bolt, or run without checkpoints"
                )
        policies, tell = policies or {EVERY_UNIT: "none"}, self.notices.append
        self.scaling = Scaling(plan, policies, settings.probe_every, tell, ask, settings.objectives)
        if self.scaling.looks_early:
            self.settings = replace(self.settings, first_status_every=FIRST_EVERY)
        self.commands = Commands(self)
        self.pipelines = PipelineDriver(
            plan, self.scaling.judges, self.commands.scale, lambda i, message: self.outbox.append((i, message))
        )
        for name in self.scaling.halved:
            self.units[name].lives.first_table = OutputTable.halved
        if completed is not None:
            for name, before in completed.units.items():
                if name in self.units and before.table and before.parallelism == self.units[name].parallelism:
                    self.units[name].lives.first_table = partial(table_like, before.table)
        ackers = settings.ackers if settings.delivery is not Delivery.NONE else 0
        self.acker_assignment = AckerAssignment(ackers, self._new_build, self.outbox)
        self._ack_routing = AckRoutingUpdates(plan, settings.pending_rows, self.acker_assignment)
        self._lost_frames = LostFrames()
        self.run_checkpoints = RunCheckpoints(self, completed, keep, last_number, find)
        self.checkpoints = self.run_checkpoints.checkpoints
        for unit in self.units.values():
            unit.state.checkpoints = self.checkpoints
        self.restores = Recovery()
        self.going_back = GoingBack(self, self._exactly)
        self.unforked = Unforked(self)
        self.unchaining = Unchaining(self)
        self.reader_scaling = ReaderScaling(self, parallelism or ())
        self.restarts = Restarts(self, self._exactly)
        self.died_late = False  # a process died when the run was ending
        self._deadline: float | None = None
        self.unresponsive = Unresponsive(self)
        self.slow_sinks = SlowSinks(self)
        self.spout_order = SpoutOrder(self)
        self.started_at, self.deaths = 0.0, 0
        self.running_since: float | None = None
        self.ended_at: float | None = None

    @property
    def completed(self) -> CompletedCheckpoint | None:
        """The newest complete checkpoint."""
        return self.run_checkpoints.completed

    def _new_build(self, unit: str, beside: int = 0, on: str | None = None, **fields: Any) -> Build:
        """Return the order for a new sub-unit: in the process of `beside`, on host `on`, or anywhere. Raises UsageError."""
        self._settle_slots()
        incarnation = self.next_incarnation
        request = slot_request_of(self.plan, unit, self.places.hosts.get(beside, on), beside != 0)
        host = self.places.place(incarnation, request)
        self.next_incarnation += 1
        self.unit_of[incarnation] = unit
        return Build(
            unit=unit,
            incarnation=incarnation,
            epoch=self.epoch,
            host=host,
            run=self.run,
            settings=self.settings,
            probes=self._probes,
            lineage=self._lineage,
            continues=self.continues,
            **self.run_checkpoints.told_to_builds(),
            **fields,
        )

    # starting --------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin to build."""
        self.started_at = now
        self.start_units(now)
        self.deliver(now)

    def start_units(self, now: float) -> None:
        """Have ack servers and units begin, from the newest complete checkpoint where there is one."""
        self.acker_assignment.start()
        for name, unit in self.units.items():
            before = self.completed.units.get(name) if self.completed is not None else None
            if self.completed is None or before is None:
                unit.start(now)
            else:
                unit.begin_from(before, self.completed.number, now)

    def begun(self, now: float) -> None:
        """Let tuples flow: the sinks are ready."""
        if self.phase != "beginning":
            return
        self.phase = "running"
        self.running_since = self.running_since or now
        self.restores.flowing(now)
        self.notices.extend(self.run_checkpoints.evolution.lines())
        self._ack_routing.send(self.units)
        for unit in self.units.values():
            unit.go(now)
        self.deliver(now)

    def _check_ack_routing(self) -> None:
        """Replay what was open at dead ack servers, once no sub-unit sends acks to them any more."""
        for number in self.acker_assignment.recovered(i for unit in self.units.values() for i in unit.subs):
            self._tell(self.units, Grace(acker=number))

    def _tell(self, names: Container[str], message: Any) -> None:
        records = (r for unit in self.units.values() if unit.name in names for r in unit.subs.values())
        self.outbox += [(r.incarnation, message) for r in records if r.started_at is not None]

    # messages --------------------------------------------------------------------------------------

    def handle(self, message: Any, now: float) -> bool:
        """Take a message from a sub-unit, an ack server or the keeper; False if no unit here knows it."""
        known = True
        self.now = now
        incarnation = getattr(message, "incarnation", None)
        if incarnation is not None and self.unresponsive.handle(message, now):
            return True
        if isinstance(message, (Built, Exited)):
            self.unforked.forget(message.incarnation)
        if isinstance(message, Exited):
            self._on_exited(message, now)
        elif isinstance(message, NotForked):
            self.unforked.handle(message, now)
        elif isinstance(message, AckRoutingSet):
            self.acker_assignment.routed(message.incarnation, message.version)
            self._check_ack_routing()
        elif isinstance(message, Failed):
            self.restarts.handle(message, now)
        elif isinstance(message, (Snapped, NotSnapped, StateEvolved)):
            self.run_checkpoints.handle(message, now)
            self._go_on_changing(now)
        elif isinstance(message, Broken) and self._exactly:
            self.going_back.broken(message, now)
        elif isinstance(message, (Built, Stopped)) and not self.unit_of.get(message.incarnation, "?"):
            self._on_ack_server(message)
        else:
            unit = self.units.get(self.unit_of.get(incarnation, ""))  # type: ignore[arg-type]
            known = unit is not None and unit.handle(message, now)
            if isinstance(message, Status):
                self.scaling.status(message)
                self.slow_sinks.handle(message, now)
                self.pipelines.status(self.unit_of.get(message.incarnation, ""), message)
            if isinstance(message, Stopped):
                self.checkpoints.left(message.incarnation, now)
                self._check_ack_routing()
        self.deliver(now)
        self._step_pipelines(now)
        return known

    def _step_pipelines(self, now: float) -> None:
        if self.phase == "running" and not self.draining and not self.busy:
            self.pipelines.step(self.units, now)

    def _on_ack_server(self, message: Any) -> None:
        if isinstance(message, Built):
            self.acker_assignment.built(message.incarnation, message.express)
            if self.phase == "running":
                self._ack_routing.send(self.units, newcomer=True)

    def _on_exited(self, message: Exited, now: float) -> None:
        name = self.unit_of.get(message.incarnation)
        self.unresponsive.gone(message.incarnation, now)
        if name is None or self.phase in ("stopping", "ended"):
            if name and self.units[name].subs.pop(message.incarnation, None) is not None:
                self.died_late = True
            return
        if name:
            unit = self.units[name]
            record = unit.subs.get(message.incarnation)
            if record is None or record.stopped:
                return
            if not record.restarting and not unit.ended_here(message.incarnation):
                self.deaths += 1
                self.notices.append(f"{name}/{message.incarnation} died ({message.reason or 'no reason known'})")
            if self.going_back.after_death:
                unit.measurements.died(message.incarnation, state_too=False)
                del unit.subs[message.incarnation]
                self.going_back.begin(f"{name}/{message.incarnation} died", now, not message.with_host)
                return
            unit.died(message.incarnation, message.reason, now, message.with_host)
            if self.phase == "running":
                self._ack_routing.settle(self.units)
            self._check_ack_routing()
            return
        number = self.acker_assignment.died(message.incarnation)
        if number is not None:
            self.deaths += 1
            self.notices.append(f"ack server {number} died ({message.reason or 'no reason known'})")
            if self.going_back.after_death:
                self.going_back.begin(f"ack server {number} died", now, not message.with_host)

    def deliver(self, now: float) -> None:
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

    def _settle_slots(self) -> None:
        mark = (self.next_incarnation, sum(len(unit.subs) for unit in self.units.values()))
        self.places.settle(lambda: {i for unit in self.units.values() for i in unit.subs}, mark)

    def _on_event(self, unit: Unit, event: str, text: str, now: float) -> None:
        if event == "failed":
            self.fail(text, now)
        elif event == "check":
            unit.check(now)
        elif event == "changed":
            self.scaling.changed(unit.plan.original or unit.name, unit.changes[-1])
        elif event == "reachable" and self.phase == "running":
            self._ack_routing.send(self.units)
        elif event == "rescaled" and self.phase == "running":
            self._ack_routing.postpone(unit.name, self.units)
        elif event == "settled" and self.phase == "running" and self.settings.delivery is not Delivery.NONE:
            # Roots wait for no replica that is down; and those of owners that are not above miss nothing.
            self._tell(self.plan.above(unit.name) if text or not unit.down else (), Grace())

    def _advance(self, now: float) -> bool:
        units = self.units.values()
        if self.phase == "building" and all(u.table is not None for u in units):
            if not self.acker_assignment.ready:
                return False
            self.phase = "wiring"
            for unit in units:
                unit.register()
            return True
        if self.phase == "wiring" and all(u.wired for u in units):
            self.phase = "beginning"
            return True
        if self.phase == "running" and (self.unchaining.step(now) or self.reader_scaling.step(now)):
            return True
        if self.phase == "running" and self.spout_order.step():
            return True
        if self.phase == "running" and all(u.finishing and all(r.finished for r in u.subs.values()) for u in units):
            if self._exactly and not self.run_checkpoints.final_completed:
                return self.run_checkpoints.begin_final(now)
            self.finished_in_order = True
            self._stop(False, now)
            return True
        if self.phase == "running" and self.draining and self._exactly:
            if not self.run_checkpoints.final_completed:
                return self.run_checkpoints.begin_final(now)
            self.paused = True
            self._stop(False, now)
            return True
        if self.phase == "stopping" and all(u.all_stopped for u in units) and self.run_checkpoints.committing is None:
            self.phase = "ended"
            self.ended_at = now
            self.acker_assignment.stop()
            return True
        return False

    # changes -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Return whether no change can begin just now, and one can in a moment."""
        if self.draining or self.phase in ("stopping", "ended"):
            return False
        return bool(self.restores.lasting or self.checkpoints.current is not None or self.checkpoints.wanted(self.now))

    @property
    def may_checkpoint(self) -> bool:
        """Return whether a checkpoint can begin now."""
        idle = self.phase == "running" and self.checkpoints.current is None
        return idle and self.checkpoints.may_begin(self.units.values())

    def checkpoint(self, now: float) -> int:
        """Begin a checkpoint; its number. Raises UsageError when it cannot be now."""
        if not self.may_checkpoint:
            raise UsageError(
                f"{self.plan.name}: no checkpoint can be taken now: a change, a death or the end is being dealt with"
            )
        number = self.checkpoints.begin(self.units.values(), now)
        self.deliver(now)
        return number

    @property
    def _exactly(self) -> bool:
        return self.settings.delivery is Delivery.EXACTLY_ONCE

    def probe_targets(self) -> dict[int, tuple[str, float]]:
        """Return the sub-units to probe now: incarnation -> (data endpoint, seconds between two probes)."""
        return self.scaling.targets(self.units) if self.phase == "running" and not self.draining else {}

    # the end ---------------------------------------------------------------------------------------

    def drain(self, now: float) -> None:
        """End as if the spouts had ended: what is in flight is processed."""
        if self.draining:
            return
        self.draining, self.checkpoints.ends = True, self._exactly
        for unit in self.units.values():
            unit.unthrottle(now)  # the end need not wait for it
        if self.phase in ("building", "wiring", "beginning") and (self.unforked or not self.going_back.after_death):
            self.paused = self.going_back.after_death and self.completed is not None
            self._stop(True, now)
        elif not self._exactly:  # else spouts stop where the last checkpoint cuts
            for unit in self.units.values():
                unit.drain()
        self.deliver(now)

    def stop_at_once(self, now: float) -> None:
        """End without draining; what is in flight is lost."""
        self._stop(True, now)
        self.deliver(now)

    def fail(self, text: str, now: float, cause: bytes = b"") -> None:
        """End with this failure; the first one counts."""
        if self.failure is None and self.phase != "ended":
            self.failure, self.cause = text, cause
            self._stop(True, now)

    def _stop(self, at_once: bool, now: float) -> None:
        if self.phase == "ended":
            return
        again = self.phase == "stopping"
        self.phase = "stopping"
        self.run_checkpoints.stop(at_once)  # those that leave now do not do their part
        patience = STOP_AT_ONCE_PATIENCE if at_once else STOP_PATIENCE
        self._deadline = min(self._deadline or now + patience, now + patience)
        if not again or at_once:
            for unit in self.units.values():
                unit.stop(at_once)

    def _go_on_changing(self, now: float) -> None:
        """Look whether changes that stand between two subscales go on: a checkpoint may have held them up."""
        for unit in self.units.values():
            if unit.change is not None:
                unit.check(now)

    def tick(self, now: float) -> None:
        """Do what is due: deadlines, checkpoints, policies, lost frames, silent processes. Called a few times a second."""
        self.now = now
        self.going_back.tick(now)
        if self.phase == "stopping" and self._deadline is not None and now >= self._deadline:
            for unit in self.units.values():
                for record in list(unit.subs.values()):
                    if not record.stopped:
                        self.outbox.append(("keeper", Kill(record.incarnation)))
                        unit.subs.pop(record.incarnation, None)
                        self.died_late = True  # what it had still to commit is committed for it
                        unit.measurements.died(record.incarnation)
        self.restarts.tick(now)
        if self.phase == "running" and not self.restarts:
            self.checkpoints.tick(self.units.values(), now)
            self._go_on_changing(now)
        if self.phase == "running" and not self.draining and not self.busy:
            since = now - (self.running_since or now)
            self.scaling.decide(self.units, now, since, self.hosts, *self.places.offered)
        if self.phase == "running":
            for _, receiver, sender, text in list(self._lost_frames.find(self.units, self.places.hosts, now)):
                self.handle(Broken(receiver, sender, text), now)
            self.scaling.sampler.forget({incarnation for unit in self.units.values() for incarnation in unit.subs})
        self.unresponsive.tick(now)
        self.deliver(now)
        self._step_pipelines(now)
