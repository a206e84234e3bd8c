"""All that leaves a sub-unit: its outlets, the routes and channels behind them, and its sinks.

It is one module of over 300 lines: a new table, a barrier and the end each pass all of outlets, routes and channels.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.fences import TO_BE_NAMED
from esault.flow.channel.frame import BARRIER, CHECKPOINT, END, FENCE, WATERMARK
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.wire import Wire
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.replica_acks import ReplicaAcks
from esault.flow.operators.dead_letter import dead_letter
from esault.flow.operators.user_error import DeadLetters, described
from esault.flow.send.chained_bolt import ChainedBolt
from esault.flow.send.open_hooks import OpenHooks
from esault.flow.send.outlet import OutletRunner, Receiver
from esault.flow.send.replica_route import MutedChannel, ReplicaRoute
from esault.flow.send.route import Route
from esault.flow.send.route_factory import route
from esault.flow.send.sink_call import Background
from esault.flow.send.sink_writer import SinkWriter
from esault.flow.send.sink_writers import SinkWriters
from esault.flow.send.unprocessed import UnprocessedRows
from esault.flow.watermark.clock import Clock
from esault.flow.watermark.split_clock import OpenSplits
from esault.messages.control import Build, Table
from esault.messages.delivery import Delivery
from esault.payload.codec import Codec
from esault.payload.column import PLAIN_TYPES
from esault.routing.table import OutputTable
from esault.topology.context import Context, logger_of
from esault.topology.plan import Edge, SinkPlan, UnitPlan
from esault.topology.split_source import SplitSource
from esault.topology.step import Step

__all__ = ["Outputs"]


class Outputs:
    """Layer one of the routing with its channels, by target unit and receiver; and the sinks, which need neither."""

    def __init__(
        self,
        *,
        build: Build,
        plan: UnitPlan,
        context: Context,
        wire: Wire,
        codec: Codec,
        acks: Acks,
        dead_letters_at: Callable[[str | None], DeadLetters],
        random64: Callable[[], int],
        clock: Callable[[], float],
        background: Background | None = None,
        wake: Callable[[], None] = lambda: None,
        pause: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._pause = pause
        self._background = background
        self._wake = wake
        self._build = build
        self._plan = plan
        self._context = context
        self._wire = wire
        self._codec = codec
        self._acks = acks
        self._dead_letters_at = dead_letters_at
        self._random64 = random64
        self._clock = clock
        self._linger = build.settings.linger
        targets = (*plan.targets, *(bolt.name for bolt in plan.bolts))
        self._channels: dict[str, dict[int, OutChannel]] = {target: {} for target in targets}
        #: the same, all of them
        self.channels: list[OutChannel] = []
        self._routes: dict[str, list[Route]] = {target: [] for target in targets}
        self._versions: dict[str, int] = {}
        #: the newest fence of what this sub-unit gives away
        self._fence: tuple[int, int, int] | None = None
        #: fences behind which bolts that were chained have processes of their own
        self._parted: list[tuple[int, int, int]] = []
        #: channels that carry nothing but what waits in them and END; open until the receiver is gone
        self._leaving: list[OutChannel] = []
        #: of what is sent where any sub-unit will do; None: nothing is acked, or replicas ack apart
        self.unprocessed: UnprocessedRows | None = None
        if build.settings.delivery is not Delivery.NONE and not plan.tracks_replicas:
            self.unprocessed = UnprocessedRows(build.incarnation)
        self.sinks = SinkWriters(build.settings.delivery is Delivery.EXACTLY_ONCE)
        #: of sinks, where one is not done
        self.open_hooks: list[OpenHooks] = []
        #: rows that a function step refused and its policy survived
        self.errors = 0
        self.dead_letters = 0
        self._told: set[str] = set()
        #: dead letters of function steps that are not durable yet
        self._unsynced: list[DeadLetters] = []
        #: where event time starts, but for sources of splits
        self._own_clocks: list[Clock] = []
        #: by target what makes the watermarks of each way there; None: this sub-unit's own goes on
        self.clocks: dict[str, list[Clock | None]] = {target: [] for target in targets}
        #: of a spout that reads splits: those that are open here
        self.splits = OpenSplits() if isinstance(plan.spout, SplitSource) else None
        #: chained bolts, by name
        self.bolts: dict[str, ChainedBolt] = {}
        #: told (unit, stream, keys, values) of all that chained bolts emit; for tests
        self.observer: Callable[[str, str, Any, Any], None] | None = None
        self._runners = self._make_runners(plan)
        #: places in the midst of these ways, where dead letters go on
        self._places: dict[str, Receiver] = {}

    def _make_runners(self, unit: UnitPlan) -> dict[str, OutletRunner]:
        made = partial(
            OutletRunner,
            writers=self._make_sink,
            routes=partial(self._make_route, unit.name),
            clocks=self._make_clock,
            survive=partial(self._survive, unit.name),
            bolts=partial(self._make_bolt, unit.name),
            pause=self._pause,
            # of its own: code of users that has seeded `random` is not to be disturbed
            chance=random.Random(f"{self._context.run}/{unit.name}/{self._context.sub_unit}").random,
        )
        return {stream: made(outlet) for stream, outlet in unit.streams.items()}

    def _make_bolt(self, sender: str, plan: UnitPlan) -> ChainedBolt:
        bolt = self.bolts[plan.name] = ChainedBolt(
            plan=plan,
            context=self._context.of_unit(plan.name),
            settings=self._build.settings,
            codec=self._codec,
            dead_letters=self._dead_letters_at(plan.on_error.path),
            runners=self._make_runners(plan),
            observe=self._observe,
            route=self._make_route(sender, Edge(plan.name, 0, plan.inputs[0].grouping), None),
            clock=self._clock,
            pause=self._pause,
            observed=self._observed,
        )
        return bolt

    def _observed(self) -> bool:
        return self.observer is not None

    def _observe(self, unit: str, stream: str, keys: Any, values: Any) -> None:
        if self.observer is not None:
            self.observer(unit, stream, keys, values)

    @property
    def split_tuples(self) -> int:
        """Return how many tuples were of hot keys that were split."""
        return sum(route.split_tuples for routes in self._routes.values() for route in routes)

    @property
    def split_keys(self) -> dict[str, dict[str, int]]:
        """Return the hot keys that are split now: unit that gets them -> key as text -> over how many sub-units."""
        return {
            target: dict(route.split_keys)
            for target, routes in self._routes.items()
            for route in routes
            if route.split_keys
        }

    def check_bolts(self) -> None:
        """Find values that chained bolts changed after they had emitted them. Raises PayloadError."""
        for bolt in self.bolts.values():
            bolt.emitter.check_unchanged()

    def close_bolts(self) -> None:
        """Close the objects of chained bolts."""
        for bolt in self.bolts.values():
            bolt.close()

    def _make_sink(self, plan: SinkPlan) -> SinkWriter:
        here = self._context
        context = Context(
            unit=plan.name,
            sub_unit=here.sub_unit,
            host=here.host,
            logger=logger_of(plan.sink),
            metrics=here.metrics,
            run=here.run,
            lineage=here.lineage,
            now=self._clock,
            in_thread=here.in_thread,
            run_dir=here.run_dir,
        )
        writer = SinkWriter(
            plan,
            context,
            self._build.settings,
            self._acks,
            self._random64,
            self._clock,
            self._background,
            self._wake,
            self.open_hooks,
        )
        self.sinks.append(writer)
        return writer

    def _make_clock(self, step: Step) -> Clock:
        assert step.event_time is not None
        if self.splits is not None:
            return self.splits.clock(step.event_time, self._clock)
        made = Clock(step.event_time, self._clock, self._plan.kind == "bolt")
        self._own_clocks.append(made)
        return made

    def times(self) -> tuple[float, ...]:
        """Return how far event time has come here, by clock, for a checkpoint; empty where none goes on with the clock."""
        if not any(clock.advances for clock in self._own_clocks):
            return ()
        return tuple(clock.watermark for clock in self._own_clocks)

    def begin_at(self, times: Sequence[float]) -> None:
        """Event time goes on from a checkpoint."""
        for clock, time in zip(self._own_clocks, times):
            clock.begin_at(time)

    def _make_route(self, unit: str, edge: Edge, clock: Clock | None) -> Route:
        self.clocks[edge.target].append(clock)
        made = route(unit, edge, self._build.settings.route_cache)
        made.unprocessed = self.unprocessed
        if edge.replica_id:
            assert isinstance(self._acks, ReplicaAcks)
            made = ReplicaRoute(made, edge.replica_id, self._acks)
        self._routes[edge.target].append(made)
        return made

    def _survive(self, unit: str, step: Step, error: BaseException, key: Any, value: Any) -> None:
        counts = self.bolts.get(unit, self)
        counts.errors += 1
        if step.name not in self._told:
            self._told.add(step.name)
            what = "skipped" if step.on_error.kind == "skip" else f"kept in {self._dead_letters_at(step.on_error.path)}"
            self._context.logger.error(
                "step %r, key %r: %s\n(the tuple is %s; further errors of this step are only counted)",
                *(step.name, key, described(error), what),
            )
        if step.on_error.kind == "dead_letter":
            counts.dead_letters += 1
            box = self._dead_letters_at(step.on_error.path)
            context = replace(self._context, unit=unit)
            box.put(
                dead_letter(
                    context=context,
                    codec=self._codec,
                    error=error,
                    hook=step.name,
                    key=key,
                    value=value,
                    number=counts.dead_letters,
                    at=f"step:{step.name}",
                    rows=[(key, value)],
                )
            )
            if box not in self._unsynced:
                self._unsynced.append(box)

    def _sync(self) -> None:
        # Once for all dead letters of a batch: each takes a write of the disk, which is as long as hundreds of rows.
        while self._unsynced:
            self._unsynced.pop().sync()

    # tables ------------------------------------------------------------------------------------------

    def install(self, message: Table, ended: bool) -> int:
        """Send by this table from now on, unless it is an old one; the version that holds.

        What is buffered goes by the table before it, and a BARRIER behind it to all, also to those that stay: a sub-unit
        that gives keys away must know that this sender has switched. `ended`: this sub-unit has sent END.
        """
        target = message.target
        if message.version > self._versions.get(target, -1):
            channels = self._channels[target]
            for channel in channels.values():
                channel.flush(self._clock())
                if channel.incarnation in message.left:
                    channel.put(END, None)
                elif channel.incarnation in message.peers and channel.number == message.peers[channel.incarnation][2]:
                    channel.put(BARRIER, message.version)
            kept = {
                incarnation: self._keep(
                    channels.pop(incarnation, None), incarnation, endpoint, number, message.version, ended
                )
                for incarnation, (endpoint, _, number) in message.peers.items()
            }
            for channel in channels.values():
                if channel.incarnation in message.left:
                    self._leaving.append(channel)
                else:
                    channel.close()
            self._channels[target] = kept
            for incarnation, change in message.gave.items():
                kept[incarnation].gave = change
            table = OutputTable.from_snapshot((message.version, message.pairs))
            for each in self._routes[target]:
                each.install(table, kept)
            if target in self.bolts:
                self._part(self.bolts[target], target, ended)
            self._versions[target] = message.version
            self.channels = [channel for by_receiver in self._channels.values() for channel in by_receiver.values()]
            for other, mark in message.marks.items():  # at the same place among the rows as the new table
                for channel in self._channels[other].values():
                    channel.flush(self._clock())
                    channel.put(CHECKPOINT, mark)
        return self._versions[target]

    def _part(self, bolt: ChainedBolt, target: str, ended: bool) -> None:
        """Send what comes to a chained bolt to its own sub-units from now on; what follows comes behind what it has emitted here."""
        if not bolt.apart and not ended:
            for incarnation, channel in self._channels[target].items():
                channel.put(FENCE, (-incarnation, 0, TO_BE_NAMED))
                self._parted.append((-incarnation, 0, 0))
                self.fence(-incarnation, 0)
        bolt.apart = True

    def _keep(
        self, old: OutChannel | None, incarnation: int, endpoint: str, number: int, version: int, ended: bool
    ) -> OutChannel:
        if old is not None:
            if old.number == number:
                return old
            old.close()  # it was broken; frames are numbered anew on a new channel
        if not endpoint:
            return MutedChannel(
                incarnation, 0, self._build.epoch, self._codec, self._build.settings, self._random64, self._plan.name
            )
        made = OutChannel(
            incarnation,
            number,
            self._build.epoch,
            self._wire.link(endpoint),
            self._codec,
            self._build.settings,
            self._random64,
            self._plan.name,
        )
        made.put(WATERMARK, (math.inf, False, 0, (), 0) if ended else None)
        made.put(BARRIER, version)  # the one on the channel before may be among what was lost
        if self._fence is not None:
            made.put(FENCE, self._fence)
        for each in self._parted:
            made.put(FENCE, each)
        if ended:
            made.put(END, None)
        return made

    def fence(self, version: int, number: int, old: int = 0) -> None:
        """Divide what was emitted from what comes behind a portion of state: one that goes, or one of an old owner that has come."""
        for channel in self.channels:
            channel.flush(self._clock())
            channel.put(FENCE, (version, number, old))
        if not old and version > 0:
            self._fence = (version, number, 0)

    def of(self, target: str) -> Iterable[OutChannel]:
        """The channels to a unit."""
        return self._channels[target].values()

    # rows --------------------------------------------------------------------------------------------

    def push(
        self,
        stream: str,
        lineage: Lineage,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        now: float,
    ) -> None:
        """Rows of a stream, to wherever they go, and their dead letters to the disk. The sequences must not change afterwards."""
        runner = self._runners.get(stream) or self._places.get(stream)
        if runner is not None:
            try:
                runner.push(lineage, keys, values, ids, now)
            finally:
                if self._unsynced:
                    self._sync()  # durable before the batch is acked, and where its end is an error

    def open_place(self, place: str) -> bool:
        """Take tuples of this place as those of a stream from now on: "input:UNIT:N" or "step:NAME"; False: it is not on a way from here."""
        for runner in self._runners.values():
            found = runner.find(place)
            if found is not None:
                self._places[place] = found
                return True
        return False

    def push_columns(
        self, stream: str, lineage: Lineage, keys: Any, values: Any, ids: Sequence[str] | None, now: float
    ) -> None:
        """The same where columns may be arrays."""
        runner = self._runners.get(stream)
        if type(keys) in PLAIN_TYPES and type(values) in PLAIN_TYPES:
            self.push(stream, lineage, keys, values, ids, now)
        elif runner is not None:
            try:
                runner.push_arrays(lineage, ArrayBatch(keys, values), ids, now)
            finally:
                if self._unsynced:
                    self._sync()

    @property
    def blocked(self) -> bool:
        """Return whether frames wait for a socket, or rows for a sink."""
        return any(channel.queue for channel in self.channels) or any(hooks.full for hooks in self.open_hooks)

    def retry(self) -> bool:
        """Offer waiting frames again, and rows that wait to sinks; True when no more frames are left, and few rows."""
        clear = True
        if self.open_hooks:
            for hooks in list(self.open_hooks):
                hooks.advance()
                clear = clear and not hooks.full
        for channel in self.channels:
            if channel.queue and not channel.retry():
                clear = False
        for channel in self._leaving:
            channel.retry()
        return clear

    def living(self, incarnations: Container[int]) -> None:
        """Set which sub-units live: the ways to those that have left can be closed now, and not before they had read their last frame."""
        for channel in [c for c in self._leaving if c.incarnation not in incarnations]:
            self._leaving.remove(channel)
            channel.close()

    def flush(self, now: float, idle: bool) -> None:
        """Send buffers that are due; all of them when there is nothing else to do."""
        for channel in self.channels:
            if channel.rows and (idle or now - channel.opened_at >= self._linger):
                channel.flush(now)

    @property
    def sent(self) -> dict[int, int]:
        """Number of the last frame to each receiver, those that leave included."""
        return {channel.incarnation: channel.seq for channel in (*self.channels, *self._leaving)}

    def cut(self, number: int, now: float, ended: bool) -> None:
        """Send a checkpoint's cut behind all that was emitted before it; nothing can come behind END. Raises UserError."""
        for bolt in self.bolts.values():
            bolt.check_stateless()
        for channel in self.channels:
            channel.flush(now)
            if not ended:
                channel.put(CHECKPOINT, number)

    def due_at(self, idle: bool) -> Iterator[float]:
        """Yield the times at which something here is due by itself; `idle`: while there is nothing else to do."""
        for channel in self.channels:
            if channel.rows:
                yield channel.opened_at + self._linger
        yield from self.sinks.due_at(idle)

    def end(self, now: float) -> None:
        """Send END behind everything."""
        for channel in self.channels:
            channel.flush(now)
            channel.put(END, None)

    def close(self) -> None:
        """Give up all channels. Who leaves in order does so after its receivers have read END."""
        for channel in (*self.channels, *self._leaving):
            channel.close()
