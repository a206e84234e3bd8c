"""The parts of a hop: which methods of the engine they are, and what the timers cannot see, by comparison.

`operator.run` is one call for a batch. Its share of dispatch, emits and user code is that of three loops over the same
batches: the real operator with an empty `process`, with one that only emits as many tuples, and with the user's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from bench.hops.line import Gate, Hop, Line
from bench.hops.timers import Timers
from esault import Bolt
from esault.flow.channel import senders
from esault.flow.channel.channel import OutChannel
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.roots import Roots
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.send.outlet import OutletRunner
from esault.flow.send.outputs import Outputs
from esault.flow.send.sink_writer import SinkWriter
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.frame_reader import FrameReader
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.payload.codec import Codec
from esault.runtime.net.links import UnixLink

__all__ = ["PARTS", "ROW_IDS", "Batch", "batches", "place", "shares"]

#: part -> what it is, in the order in which a batch meets them
PARTS = {
    "source": "the spout's read, position and commit",
    "receive": "looking for data at the sockets, and reading it",
    "unpack": "the bytes of a frame, read",
    "check": "shape, epoch and number of a frame; into the inbox",
    "batch": "what a batch takes beside the rest: out of the inbox, counts, histograms, the time",
    "dispatch": "the operator's loop over the tuples: look-up of the element, call of an empty process",
    "user": "the user's process without its emits",
    "emit": "self.emit",
    "copy": "columns copied and cleared behind the operator",
    "free": "tuples given back to memory",
    "steps": "function steps, the user's functions included",
    "route": "whose channel a tuple goes into",
    "buffer": "into the open batch of its channel",
    "pack": "a frame as bytes",
    "send": "the frame given to the socket",
    "sink": "rows written and committed",
    "acks": "roots opened, ids XORed, acks sent and read, the ledger",
    "reports": "status reports",
    "wait": "finding out what to wait for, and waking up",
    "loop": "the rest: turns, looks at what is due",
}
#: not a part but a difference: what all of them take more where a sink wants row ids
ROW_IDS = "row ids"

_ACKS = ("acks",)
#: (owner, method, part, parts within which it belongs to them)
_TIMED: tuple[tuple[Any, str, str, tuple[str, ...]], ...] = (
    (Hop, "slice", "loop", ()),
    (Hop, "wait", "wait", ()),
    (Hop, "wake_up", "wait", ()),
    (Hop, "receive", "receive", ()),
    (Hop, "express", "acks", ()),
    (Gate, "read", "source", ()),
    (FrameReader, "read", "check", _ACKS),
    (senders, "decode", "check", (*_ACKS, "check")),
    (Codec, "unpack", "unpack", _ACKS),
    (Codec, "unpack_plain", "unpack", _ACKS),
    (SpoutSubUnit, "_work", "batch", ()),
    (BoltSubUnit, "_work", "batch", ()),
    (ElementOperator, "run", "process", ()),
    (ObjectOperator, "run", "process", ()),
    (Outputs, "push", "route", ()),
    (OutletRunner, "_apply", "steps", ()),
    (OutChannel, "add", "buffer", ("buffer",)),
    (OutChannel, "flush", "buffer", ("buffer",)),
    (OutChannel, "put", "pack", ()),
    (OutChannel, "retry", "send", ()),
    (UnixLink, "send", "send", _ACKS),
    (SinkWriter, "write", "sink", ()),
    (SinkWriter, "commit", "sink", ()),
    (Roots, "open", "acks", ()),
    (Roots, "watch", "acks", ()),
    (Acks, "add", "acks", _ACKS),
    (Acks, "send", "acks", ()),
    (Acks, "retry", "acks", ()),
    (SubUnit, "status", "reports", ()),
)

#: batches of a hop that are compared, rounds of the comparison
KEPT, ROUNDS = 40, 7


def place(timers: Timers) -> None:
    """Timers around all parts. `run` of a slice says whose they are."""
    for owner, name, part, unless in _TIMED:
        timers.put(owner, name, part, unless)
    sliced = Hop.slice

    def entered(hop: Hop) -> bool:
        timers.enter(hop.name)
        return sliced(hop)

    Hop.slice = entered  # type: ignore[method-assign]  # taken off with the timer under it


class Batch(NamedTuple):
    """What an operator was given, and the tuples that it put out."""

    input: int
    keys: Any
    values: Any
    ids: Any
    emitted: int


def batches(line: Line, rows: int) -> dict[str, list[Batch]]:
    """The first batches of each bolt while so many rows of the load pass through."""
    kept: dict[str, list[Batch]] = {}
    cores = {hop.name: hop.core for hop in line.hops if isinstance(hop.core, BoltSubUnit)}
    for name, core in cores.items():
        kept[name] = _keep(core)
    try:
        line.offer(rows)
    finally:
        for core in cores.values():
            del core.operator.run
    return kept


def _keep(core: BoltSubUnit) -> list[Batch]:
    kept: list[Batch] = []
    run, emitter = core.operator.run, core.emitter

    def keeping(input: int, keys: Any, values: Any, ids: Any) -> None:
        run(input, keys, values, ids)
        if len(kept) < KEPT and keys:
            kept.append(Batch(input, keys, values, ids, emitter.rows()))

    core.operator.run = keeping  # type: ignore[method-assign]
    return kept


def _process(emits: int, emitted: tuple[Any, Any]) -> type[Bolt[Any, Any, Any, Any]]:
    """A bolt whose `process` emits the same tuple so many times, and does nothing else."""
    body = "".join("    self.emit(KEY, VALUE)\n" for _ in range(emits)) or "    pass\n"
    scope: dict[str, Any] = dict(zip(("KEY", "VALUE"), emitted))
    exec(f"def process(self, key, value):\n{body}", scope)
    return type("Emits", (Bolt,), {"process": scope["process"]})


class _Compared(NamedTuple):
    """Nanoseconds of all batches together."""

    run: float
    copy: float
    #: what came in
    free: float
    #: what went out
    free_out: float


def _timed(core: BoltSubUnit, factory: Callable[[], Any], kept: list[Batch]) -> _Compared:
    """An operator like the core's with these objects, on fresh tuples as they come off the wire; medians of some rounds."""
    plan = replace(core.plan, factory=factory)
    emitter = Emitter(plan.name, plan.streams, 0, False, core.codec)
    made = operator(OperatorParameters(plan, core.context, emitter, core.codec, core.operator.dead_letter_sink, 0.0))
    columns, clock = (emitter.outs[""].keys, emitter.outs[""].values), time.perf_counter_ns
    rounds = []
    for _ in range(ROUNDS + 1):
        run = copy = free = free_out = 0
        for batch in kept:
            came = core.codec.unpack(core.codec.pack((batch.keys, batch.values)))
            begun = clock()
            made.run(batch.input, *came, None)
            ran = clock()
            copies = [column.copy() for column in columns]
            for column in columns:
                column.clear()
            copied = clock()
            del came
            freed = clock()
            del copies
            run, copy, free = run + ran - begun, copy + copied - ran, free + freed - copied
            free_out += clock() - freed
        rounds.append((run, copy, free, free_out))
    return _Compared(*map(statistics.median, zip(*rounds[1:])))  # elements are made in the first


def shares(core: BoltSubUnit, kept: list[Batch]) -> dict[str, float]:
    """dispatch, user and emit as shares of `operator.run`; copy, free and free_out in nanoseconds for each tuple that came in.

    Where a tuple does not emit the same number each time, emits are those of the nearest whole number.
    """
    rows, emitted = sum(len(b.keys) for b in kept), sum(b.emitted for b in kept)
    emits = round(emitted / rows)
    some = ("word", 1) if emits > 1 else (kept[0].keys[0], kept[0].values[0])
    assert core.plan.factory is not None
    full = _timed(core, core.plan.factory, kept)
    empty, emitting = (_timed(core, _process(n, some), kept).run for n in (0, emits))
    dispatch = min(1.0, empty / full.run)
    emit = min(1.0 - dispatch, max(0.0, (emitting - empty) / full.run))
    return {
        "dispatch": dispatch,
        "emit": emit,
        "user": 1.0 - dispatch - emit,
        **{name: getattr(full, name) / rows for name in ("copy", "free", "free_out")},
    }
