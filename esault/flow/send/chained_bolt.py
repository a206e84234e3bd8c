"""A chained bolt at work: its object in the process of the unit that feeds it, between two outlets, without a wire.

There is a second way, for when it has got processes of its own: a route to them. The table of the unit that it has become changes
from one to the other, at one place among the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import countOf
from typing import Any

from esault.counters import UnitDurations
from esault.flow.channel.lineage import Lineage
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import DeadLetters, UserError
from esault.flow.send.outlet import OutletRunner, Receiver
from esault.flow.send.route import Route
from esault.messages.settings import Settings
from esault.messages.status import ChainedCounts, SubUnitCounts
from esault.payload.codec import Codec
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["ChainedBolt"]

#: values that cannot be changed, and so can be shared
_SHARED = frozenset((str, bytes, int, float, bool, type(None)))


class ChainedBolt:
    """The operator of one chained bolt, and the outlets behind it.

    What it emits belongs to the root that its sender's rows belong to, and is accounted for with what that sender emits: a
    replay goes through it again, as through a function step.
    """

    def __init__(
        self,
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
    ) -> None:
        """`observe` is told (unit, stream, keys, values) of all that is emitted; `route`: to its own sub-units. Raises UserError."""
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
        count, begun = len(keys), self._clock()
        self._in += count
        own = self._own(values)  # keys cannot be changed
        made = self._operator.mapped(keys, own) if ids is None else None
        if made is None:
            self._operator.run(0, keys, own, ids)
            emitted = self.emitter.pop_emitted(ids is not None)
        else:
            emitted = [("", keys, made, None)]
        done = self._clock()
        self._busy += done - begun
        self._durations.latency.record(done - begun, count)
        if self._leaf:
            self._durations.end_to_end.record(done - lineage.due, count)
        for stream, out_keys, out_values, out_ids in emitted:
            self._out += len(out_keys)
            self._observe(self.name, stream, out_keys, out_values)
            runner = self._runners.get(stream)
            if runner is not None:
                runner.push(lineage, out_keys, out_values, out_ids, now)

    def find(self, place: str) -> Receiver | None:
        """Return what takes a batch from a place on; see `OutletRunner.find`."""
        if place == f"input:{self.name}:0":
            return self
        found = (runner.find(place) for runner in self._runners.values())
        return next((each for each in found if each is not None), None)

    def _own(self, column: Sequence[Any]) -> Sequence[Any]:
        """Return the same values, but what could be changed through bytes: a bolt may do with its tuples what it likes."""
        kind = type(column[0])
        # Most columns are of one kind: to count that is quicker than to look each up, and needs no list.
        if (kind in _SHARED and countOf(map(type, column), kind) == len(column)) or _SHARED.issuperset(
            map(type, column)
        ):
            return column
        rows, codec = tuple(column), self._codec
        data = codec.pack_plain(rows, b"")
        own: Sequence[Any] = codec.unpack(codec.pack_value(rows)) if data is None else codec.unpack_plain(data, 0)
        return own

    def check_stateless(self) -> None:
        """Find that its object keeps something after all, which a checkpoint would not hold. Raises UserError."""
        if self._packed() != self._state:
            raise UserError(
                f"unit {self.name!r} is chained, and its object has changed its attributes, which no checkpoint holds: say chain=False "
                "where the bolt is made"
            )

    def _packed(self) -> bytes | None:
        return self._operator.peek(None)

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
