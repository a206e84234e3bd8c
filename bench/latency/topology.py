"""Workload C with a sink that says when tuples were due that came late."""

from __future__ import annotations

from bench.kit.steady_latency import TimedSink
from bench.workloads.topologies import Count, Offered, Split
from esault import Topology, by_key, shuffle
from esault.sources import Paced

__all__ = ["timed"]


def timed(load: str, passes: int, out: str, rate: float) -> Topology:
    """`paced` of bench/workloads/topologies.py; latencies by when tuples were due are in files beside `out`."""
    t = Topology("bench-at-load")
    lines = t.spout("lines", Paced(Offered(load, passes), rate))
    counts = lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key())
    counts.sink("out", TimedSink(out))
    return t
