"""A chained bolt at work: its object in the process of the unit that feeds it, between two outlets, without a wire.

There is a second way, for when it has got processes of its own: a route to them. The table of the unit that it has become changes
from one to the other, at one place among the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from esault.counters import UnitDurations
from esault.flow.channel.lineage import Lineage
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import DeadLetters, UserError
from esault.flow.send.fused_bolts import FusedBolts
from esault.flow.send.outlet import OutletRunner, Receiver
from esault.flow.send.route import Route
from esault.messages.settings import Settings
from esault.messages.status import ChainedCounts, SubUnitCounts
from esault.payload.codec import Codec
from esault.payload.scalars import all_scalars
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

if TYPE_CHECKING:
    from esault.topology.process_loop import ProcessLoop

__all__ = ["ChainedBolt"]


class ChainedBolt:
    """The operator of one chained bolt, and the outlets behind it.

    What it emits belongs to the root that its sender's rows belong to, and is accounted for with what that sender emits: a
    replay goes through it again, as through a function step.
    """

    def __init__(
        self,
        *,
        plan: UnitPlan,
        context: Context,
        settings: Settings,
        codec: Codec,
        dead_letters: DeadLetters,
        runners: Mapping[str, OutletRunner],
        observe: Callable[[str, str, Any, Any], None],
        route: Route,
        clock: Callable[[], float],
        pause: Callable[[float], None] = lambda seconds: None,
        observed: Callable[[], bool] = lambda: False,
    ) -> None:
        """`observe` is told (unit, stream, keys, values) of all that is emitted, where it is `observed`; `route`: to its own sub-units.

        Raises UserError.
        """
        self.name = plan.name
        self._codec = codec
        self._runners = runners
        self._observe = observe
        self.emitter = emitter(plan, settings, codec)
        self._operator = operator(OperatorParameters(plan, context, self.emitter, codec, dead_letters, clock(), pause))
        self._state = self._packed()
        self._route = route
        self._clock = clock
        #: it has sub-units of its own, and rows go to them
        self.apart = False
        #: no unit comes behind
        self._leaf = not plan.edges and not plan.bolts
        self._in = self._out = 0
        #: seconds of processing, without what those chained behind it took
        self._busy = 0.0
        #: ... with the last batch that it processed by itself
        self.last_took = 0.0
        self._fused = FusedBolts(self, clock, observed)
        self._durations = UnitDurations()
        #: rows that function steps behind it refused, and of those the dead letters
        self.errors = self.dead_letters = 0

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Process a batch of one root, and pass on what comes of it. Raises UserError."""
        if self.apart:
            self._route.push(lineage, keys, values, ids, now)
            return
        if ids is None and self._fused.push(lineage, keys, values, now):
            return
        count, begun = len(keys), self._clock()
        self._in += count
        own = self.own(values)  # keys cannot be changed
        made = self._operator.mapped(keys, own) if ids is None else None
        if made is None:
            self._operator.run(0, keys, own, ids)
            emitted = self.emitter.pop_emitted(ids is not None)
        else:
            emitted = [("", keys, made, None)]
        done = self._clock()
        self.last_took = done - begun
        self._record(lineage, count, done - begun, done)
        for stream, out_keys, out_values, out_ids in emitted:
            self._out += len(out_keys)
            self._observe(self.name, stream, out_keys, out_values)
            runner = self._runners.get(stream)
            if runner is not None:
                runner.push(lineage, out_keys, out_values, out_ids, now)

    def _record(self, lineage: Lineage, count: int, took: float, done: float) -> None:
        self._busy += took
        self._durations.latency.record(took, count)
        if self._leaf:
            self._durations.end_to_end.record(done - lineage.due, count)

    def mapping(self, count: int) -> ProcessLoop | None:
        """Return the loop by which it would bring forth a value from each of so many; None where it would not."""
        return None if self.apart else self._operator.mapping(count)

    @property
    def behind(self) -> ChainedBolt | None:
        """Return the one bolt that gets what it emits, just so; None where it goes elsewhere, or through steps."""
        runner = self._runners.get("")
        only = None if runner is None else runner.only_bolt
        return only if isinstance(only, ChainedBolt) else None

    def failed(self, error: BaseException, key: Any) -> UserError:
        """Return the error of its `process`, which raised this for a tuple with this key."""
        return self._operator.failed(error, key)

    def mapped(self, lineage: Lineage, count: int, took: float, done: float) -> None:
        """Count a batch that was processed for it, in so many seconds until then, and brought forth as many values."""
        self._in += count
        self._out += count
        self._record(lineage, count, took, done)

    def pass_on(self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], now: float) -> None:
        """Pass on what was brought forth for it. Raises UserError."""
        runner = self._runners.get("")
        if runner is not None:
            runner.push(lineage, keys, values, None, now)

    def own(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the same values, but what could be changed through bytes: a bolt may do with its tuples what it likes."""
        if all_scalars(values):
            return values
        rows, codec = tuple(values), self._codec
        data = codec.pack_plain(rows, b"")
        own: Sequence[Any] = codec.unpack(codec.pack_value(rows)) if data is None else codec.unpack_plain(data, 0)
        return own

    def find(self, place: str) -> Receiver | None:
        """Return what takes a batch from a place on; see `OutletRunner.find`."""
        if place == f"input:{self.name}:0":
            return self
        found = (runner.find(place) for runner in self._runners.values())
        return next((each for each in found if each is not None), None)

    def check_stateless(self) -> None:
        """Find that its object keeps something after all, which a checkpoint would not hold. Raises UserError."""
        if self._packed() != self._state:
            raise UserError(
                f"unit {self.name!r} is chained, and its object has changed its attributes, which no checkpoint holds: say chain=False "
                "where the bolt is made"
            )

    def _packed(self) -> bytes | None:
        return self._operator.state.peek(None)

    def close(self) -> None:
        """Close its object."""
        self._operator.close()
        self._operator.close_shared()

    def counts(self) -> ChainedCounts:
        """Return what it has counted."""
        operator = self._operator
        rows = SubUnitCounts(
            tuples_in=self._in,
            tuples_out=self._out,
            arrivals=self._in,
            errors=self.errors + operator.errors,
            dead_letters=self.dead_letters + operator.dead_letters,
            busy_seconds=self._busy,
        )
        return ChainedCounts(rows, self._durations.snapshots())
