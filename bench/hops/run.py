"""All that is measured on one line of hops: parts, totals, row ids, policies of the collector, blocks of memory."""

from __future__ import annotations

import contextlib
import gc
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.hops.collector import POLICIES, apply
from bench.hops.line import Line
from bench.hops.parts import PARTS, batches, place, shares
from bench.hops.timers import Timers
from bench.kit.measure import summary
from bench.workloads.loads import Load
from bench.workloads.topologies import sums, words
from esault import Topology

__all__ = ["CLOSE", "TOPOLOGIES", "measure"]

TOPOLOGIES: dict[str, Callable[..., Topology]] = {"words": words, "sums": sums}
#: rows of a root, about the mean of a run with the defaults on two cores (478 and 1 009)
ROOT_ROWS = {"words": 512, "sums": 1024}
#: the sum of the parts differs from the whole by so much at most, or the bench says that it does not agree
CLOSE = 0.1
#: rows of the load that pass while blocks of memory are counted, which takes long
COUNTED_ROWS = 2_000


@contextlib.contextmanager
def _line(what: str, load: Load, ids: bool = False) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out")
        topology = TOPOLOGIES[what](str(load.path), 1, out, sink="named" if ids else "counted")
        line = Line(topology, str(load.path), folder, ROOT_ROWS[what])
        try:
            yield line
        finally:
            line.close()


class _Stretch:
    """Rows that pass through a line from rest to rest, and what each hop took of it per tuple."""

    def __init__(self, line: Line, rows: int, tuples: float) -> None:
        self.line, self.rows, self.tuples = line, rows, tuples

    def total(self) -> dict[str, float]:
        """Hop -> ns for each counted tuple."""
        for hop in self.line.hops:
            hop.nanoseconds = 0
        self.line.offer(self.rows)
        return {hop.name: hop.nanoseconds / self.tuples for hop in self.line.hops}

    def parts(self, timers: Timers, cost: tuple[float, float] = (0.0, 0.0)) -> dict[str, dict[str, float]]:
        """Hop -> part -> what the timers counted for each tuple, their own cost taken off."""
        timers.forget()
        place(timers)
        try:
            self.line.offer(self.rows)
        finally:
            timers.take_off()
        return {
            hop: {part: value / self.tuples for part, value in parts.items()}
            for hop, parts in timers.corrected(cost).items()
        }


def _split(parts: dict[str, float], of_run: dict[str, float] | None, rows: float, sends: bool) -> dict[str, float]:
    """What timers saw, with the operator's run, and what holds other parts that timers cannot see, divided by comparison."""
    found = dict(parts)
    process = found.pop("process", 0.0)
    if of_run is not None:
        for part in ("dispatch", "user", "emit"):
            found[part] = process * of_run[part]
        # Emitted tuples are given back when their frame is made, or behind the sink.
        for name, part, inside in (
            ("copy", "copy", "batch"),
            ("free", "free", "batch"),
            ("free_out", "free", "buffer" if sends else "batch"),
        ):
            taken = min(found[inside], of_run[name] * rows)
            found[part] = found.get(part, 0.0) + taken
            found[inside] -= taken
    return {part: found.get(part, 0.0) for part in PARTS}


def _blocks(stretch: _Stretch) -> dict[str, dict[str, float]]:
    """Hop -> part -> blocks of memory that were taken and not given back within the part, for each tuple; below 0: given back."""
    gc.disable()
    try:
        return stretch.parts(Timers(sys.getallocatedblocks))
    finally:
        gc.enable()


def measure(what: str, load: Load, rows: int, turns: int) -> dict[str, Any]:
    """Nanoseconds for each counted tuple of a topology, by hop and part; stretches of `rows` rows of its load, in turns."""
    timers = Timers()
    cost = timers.cost()
    each = load.tuples / load.count
    with _line(what, load) as line, _line(what, load, ids=True) as named:
        stretch, with_ids = _Stretch(line, rows, rows * each), _Stretch(named, rows, rows * each)
        for one in (stretch, with_ids):
            one.total()  # all elements made, caches filled
        apply("engine")
        timed: list[dict[str, dict[str, float]]] = []
        whole: list[dict[str, float]] = []
        ids: list[dict[str, float]] = []
        ids_timed: list[dict[str, dict[str, float]]] = []
        policies: dict[str, list[dict[str, float]]] = {name: [] for name in POLICIES}
        calls: list[float] = []
        for turn in range(turns):
            for name, of in policies.items():
                apply(name)
                of.append(stretch.total())
            apply("engine")
            whole.append(stretch.total())
            timed.append(stretch.parts(timers, cost))
            calls.append(timers.calls() / stretch.tuples)
            ids.append(with_ids.total())
            ids_timed.append(with_ids.parts(timers, cost))
            print(f"  turn {turn + 1} of {turns}: {sum(whole[-1].values()):.0f} ns per tuple", flush=True)
        flow = _flow(line, stretch, timers)
        kept = batches(line, rows)
        compared = {hop.name: shares(hop.core, kept[hop.name]) for hop in line.hops if kept.get(hop.name)}  # type: ignore[arg-type]
        blocks = _blocks(_Stretch(line, COUNTED_ROWS, COUNTED_ROWS * each))
        hops = {}
        for hop in line.hops:
            name, through = hop.name, flow[hop.name]
            sends = bool(hop.core.outputs.channels)
            split = [_split(t[name], compared.get(name), through["in"], sends) for t in timed]
            parts = {part: summary([s[part] for s in split]) for part in PARTS}
            total = summary([w[name] for w in whole])
            of_parts = sum(p["median"] for p in parts.values())
            hops[name] = {
                "parts": parts,
                "sum_of_parts": of_parts,
                "whole": total,
                "difference": of_parts / total["median"] - 1,
                "row_ids": summary([i[name] - w[name] for i, w in zip(ids, whole)]),
                "row_ids_by_timer": {
                    part: summary([i[name].get(part, 0.0) - t[name].get(part, 0.0) for i, t in zip(ids_timed, timed)])
                    for part in timed[0][name]
                },
                "policies": {policy: summary([of[name] for of in all_of]) for policy, all_of in policies.items()},
                "batches": through,
                "comparison": compared.get(name),
                "blocks": blocks[name],
                "blocks_taken": sum(value for value in blocks[name].values() if value > 0),
            }
        sums_, wholes = (
            sum(h[of] if of == "sum_of_parts" else h[of]["median"] for h in hops.values())
            for of in ("sum_of_parts", "whole")
        )
        return {
            "topology": what,
            "root_rows": ROOT_ROWS[what],
            "rows": rows,
            "timer_ns": {
                "own_part": cost[0],
                "part_around": cost[1],
                "per_tuple": summary(calls)["median"] * sum(cost),
            },
            "hops": hops,
            "sum_of_parts": sums_,
            "whole": wholes,
            "difference": sums_ / wholes - 1,
            "agrees": abs(sums_ / wholes - 1) <= CLOSE,
        }


def _flow(line: Line, stretch: _Stretch, timers: Timers) -> dict[str, dict[str, float]]:
    """Hop -> tuples in and out for each that is counted, and tuples in a batch and in a frame."""
    before = {hop.name: (hop.rows, hop.core.metrics.tuples_out, hop.core.outputs.sent) for hop in line.hops}
    stretch.parts(timers)
    found = {}
    for hop in line.hops:
        rows, out, sent = before[hop.name]
        rows, out = hop.rows - rows, hop.core.metrics.tuples_out - out
        frames = sum(seq - sent[to] for to, seq in hop.core.outputs.sent.items())
        runs = timers.cells[hop.name].get("process") or timers.cells[hop.name]["source"]
        found[hop.name] = {
            "in": rows / stretch.tuples,
            "out": out / stretch.tuples,
            "tuples_in_a_batch": rows / runs.calls,
            "tuples_in_a_frame_out": out / frames if frames else 0.0,
        }
    return found
