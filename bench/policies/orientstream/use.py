"""S5: what the policy takes against a configuration that is fixed for the peak, in the simulator.

Three topologies with the shape of the paper's queries, under a load whose mean is about half of its peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from esault.sim import Model, Operator, Run, Source, simulate

__all__ = ["MODELS", "THRESHOLD", "compare", "fixed", "load", "use"]

#: seconds that a tuple should take less than
THRESHOLD = 0.5
#: share of the seconds of a run in which the mean latency must be below it, and of what was offered that must be processed
SHARE = 0.95
SLOTS = 192
#: tuples that come at once
BURST = 8.0
#: weights of the keys: roads alike, words by Zipf's law, orders alike
ROADS = (1.0,) * 400
WORDS = tuple((rank + 1) ** -0.6 for rank in range(2000))
ORDERS = (1.0,) * 400


def load(peak: float) -> Callable[[float], float]:
    """Tuples a second: a wave of two minutes on a floor of a tenth of the peak, and a plateau at three tenths each fifth minute."""

    def rate(t: float) -> float:
        if t % 300 >= 240:
            return 0.3 * peak
        return peak * (0.1 + 0.45 * (1 - math.cos(2 * math.pi * t / 120)))

    return rate


def _traffic(widths: Mapping[str, int]) -> list[Source | Operator]:
    return [
        Source("fixes", load(1200), noise=0.05, burst=BURST),
        _operator(widths, "map", ("fixes",), 0.004),
        _operator(widths, "speed", ("map",), 0.010, keys=ROADS),
    ]


def _words(widths: Mapping[str, int]) -> list[Source | Operator]:
    return [
        Source("sentences", load(400), noise=0.05, burst=BURST),
        _operator(widths, "split", ("sentences",), 0.012, 10.0),
        _operator(widths, "count", ("split",), 0.004, keys=WORDS),
    ]


def _q3(widths: Mapping[str, int]) -> list[Source | Operator]:
    # Rates as the tables' sizes, selectivities as counted at scale 0.01 (TPC-H's third query).
    return [
        Source("customer", load(60), noise=0.05, burst=BURST),
        Source("orders", load(600), noise=0.05, burst=BURST),
        Source("lineitem", load(2400), noise=0.05, burst=BURST),
        _operator(widths, "building", ("customer",), 0.002, 337 / 1500),
        _operator(widths, "before", ("orders",), 0.004, 7286 / 15_000),
        _operator(widths, "after", ("lineitem",), 0.004, 32_260 / 60_175),
        _operator(widths, "of customers", ("building", "before"), 0.010, 1797 / 7623),
        _operator(widths, "of orders", ("of customers", "after"), 0.008, 356 / 34_057),
        _operator(widths, "revenue", ("of orders",), 0.010, keys=ORDERS),
    ]


#: query -> what makes its parts, from widths at the start
MODELS: dict[str, Callable[[Mapping[str, int]], list[Source | Operator]]] = {
    "TM": _traffic,
    "WC": _words,
    "Q3": _q3,
}


def _operator(
    widths: Mapping[str, int],
    name: str,
    senders: tuple[str, ...],
    service: float,
    selectivity: float = 1.0,
    keys: tuple[float, ...] = (),
) -> Operator:
    return Operator(name, senders, service, width=widths.get(name, 1), most=48, selectivity=selectivity, keys=keys)


def fixed(query: str) -> dict[str, int]:
    """The narrowest widths by load at the peak that keep the threshold there; found by trying, a minute each."""
    for busy in (0.95, 0.9, 0.85, 0.8, 0.7, 0.6):
        widths = _widths(query, busy)
        found = use(simulate(Model(MODELS[query](widths), slots=SLOTS), seconds=120, seed=1), sum(widths.values()))
        if found["kept"]:
            return widths
    raise RuntimeError(f"{query}: no fixed configuration keeps {THRESHOLD:g} s")


def _widths(query: str, busy: float) -> dict[str, int]:
    rates: dict[str, float] = {}
    widths: dict[str, int] = {}
    for part in MODELS[query]({}):
        if isinstance(part, Source):
            rates[part.name] = max(part.at(t) for t in range(240))
        else:
            come = sum(rates[s] for s in part.senders)
            widths[part.name] = max(1, math.ceil(come * part.service / busy))
            rates[part.name] = come * part.selectivity
    return widths


def use(run: Run, peak: int) -> dict[str, Any]:
    """Shares of what `peak` sub-units have: processors' time spent, sub-units reserved; and whether the thresholds were kept."""
    seconds = [total / tuples for tuples, total, _ in run.latency.seconds.values() if tuples > 0]
    below = sum(mean < THRESHOLD for mean in seconds) / len(seconds)
    read = run.read / run.offered
    first = [o.processed / o.arrived for o in run.operators.values() if o.arrived > 0]
    served = min(read, *first)
    busy = sum(o.busy for o in run.operators.values())
    return {
        "cpu": busy / (peak * run.seconds),
        "memory": run.worker_seconds / (peak * run.seconds),
        "utilisation": busy / run.worker_seconds,
        "below": below,
        "served": served,
        "mean_latency": run.latency.mean,
        "p99": run.latency.percentile(0.99),
        "changes": run.changes,
        "kept": below >= SHARE and served >= SHARE and run.latency.mean < THRESHOLD,
    }


def compare(query: str, policies: Mapping[str, str], seconds: float, seed: int) -> dict[str, dict[str, Any]]:
    """name -> use, of the configuration fixed for the peak and of each policy from that configuration on."""
    widths = fixed(query)
    peak = sum(widths.values())
    found = {}
    for name, spec in {"fixed": "none", **policies}.items():
        run = simulate(Model(MODELS[query](widths), slots=SLOTS), policy=spec, seconds=seconds, seed=seed)
        found[name] = use(run, peak)
    return found
