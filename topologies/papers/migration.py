"""Thirteen workers whose loads rise and fall each in its own minutes, each with an active copy; a policy may only move them.

After Sousa's dissertation (2014) on scheduling by latency degradation: 13 sources, workers and sinks; a worker gets 100 (odd) or 50 (even)
events a second, and 500 more in its busy minutes of ten; an event costs 1.72 ms. Shows many small pipelines in one topology,
active replicas (`replicas=2`: the first copy of each row counts) and `--policy migration`, which moves sub-units where it
helps and never adds any. Out comes, for each worker and key, how many events it had and the sum of their numbers, in
`out/migration/N.jsonl`. `scale` divides the rates and multiplies the cost (0.1: 5 to 60 events a second, 17.2 ms).

    esault run topologies/papers/migration.py --slots 60 --policy migration
"""

from functools import partial

from slept import Total, numbers

from esault import Topology, by_key
from esault.sim.loads import WORKERS
from esault.sinks import JsonLines
from esault.sources import Items, Paced

__all__ = ["topology"]

#: seconds an event costs; events a second more in a high minute; seconds from one level to the next
COST, MORE, RAMP = 0.00172, 500, 10


def rate(worker: int, t: float, varied: bool = True) -> float:
    """Events a second for worker 1 to 13, t seconds after the start."""
    low = 100 if worker % 2 else 50
    minute = min(9, int(t // 60))
    level = [low + MORE * (varied and high == "H") for high in WORKERS[worker - 1]]
    before = level[minute - 1] if minute else low
    return before + (level[minute] - before) * min(1.0, (t - 60 * minute) / RAMP)


def topology(
    seconds: int = 600,
    scale: float = 0.1,
    workers: int = 13,
    replicas: int = 2,
    varied: bool = True,
    out: str = "out/migration",
) -> Topology:
    """`varied=false`: each worker's low rate throughout."""
    t = Topology("migration")
    for worker in range(1, workers + 1):
        count = round(scale * sum(rate(worker, s, varied) for s in range(seconds)))
        events = Items(partial(numbers, count, worker))
        source = t.spout(f"source-{worker}", Paced(events, lambda s, worker=worker: scale * rate(worker, s, varied)))
        work = source.bolt(
            f"worker-{worker}", partial(Total, COST / scale), by_key(), max_parallelism=1, replicas=replicas
        )
        work.sink(f"sink-{worker}", JsonLines(f"{out}/{worker}.jsonl", mode="replace"))
    return t
