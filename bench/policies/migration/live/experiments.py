"""The experiment of Sousa's dissertation (2014) on real actors: 13 workers with two copies each on six hosts.

Six nodes and the driver, each in a network namespace of its own where those can be made (else on loopback). The hosts' cores are
modelled (cores.py), latencies and moves are real. The ten minutes of the schedule take
ten divided by `speed`; where queues make the latency it is divided by that, too, so the simulator's figures are shown beside the live ones as
they are and divided. The load is the varied one, under `migration` with each of the dissertation's d, `random` and
none, with a limit of 1 and memory in the test of destinations. Times in ms.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.cluster import Cluster
from bench.kit.machine import facts
from bench.policies.claims import claim_lines
from bench.policies.migration.claims import CLAIMS
from bench.policies.migration.live.run import Shape, live
from bench.policies.migration.model import NODES, Figures
from bench.policies.migration.scenarios import SCENARIOS, Measured, measure

__all__ = ["experiment", "lines"]

#: in the order in which they are run: none, random, d 0.25, 0.50, 0.75
RUN = (12, 10, 1, 2, 3)
#: claims about these scenarios that one run of each can show; those about spreads over seeds take several
JUDGED = (
    "fast p99",
    "fast mean",
    "slow copies",
    "processed",
    "sensitivity",
    "slow p99 against random",
    "slow mean against random",
    "random is no help",
    "processed against random",
)
SPREADS = ("fast as random", "latency by d")
QUICK = Shape(workers=4, minutes=0.5)
#: each host's share of the sub-units, and room for those that move
SLOTS = 16
SEEDS = 3


def experiment(quick: bool, turns: int = 1) -> dict[str, Any]:
    """Each scenario so many times, in turns; short and with four workers if `quick`. Raises RuntimeError where an event is lost."""
    shape = QUICK if quick else Shape()
    runs: dict[int, list[dict[str, Any]]] = {number: [] for number in RUN}
    with tempfile.TemporaryDirectory() as name, Cluster(Path(name), SLOTS, [f"vm{n}" for n in NODES]) as cluster:
        for turn in range(turns):
            for number in RUN:
                run = live(cluster, Path(name) / f"{number}-{turn}", SCENARIOS[number], shape, seed=turn)
                runs[number].append(run)
                print(f"  {_named(number)}: {_row(run)}; load {run['load_average'][1]:.1f}", flush=True)
        namespaces = cluster.namespaces
    simulated = measure(range(1, SEEDS + 1), RUN)[0]["sim", True]
    return {
        "machine": facts(),
        "shape": asdict(shape),
        "namespaces": namespaces,
        "turns": turns,
        "runs": {str(number): each for number, each in runs.items()},
        "sim": {str(number): {f: simulated.mean(number, f) for f in Figures._fields} for number in RUN},
        # four workers overload no host, and there is nothing to claim
        "claims": [] if quick else _claims(runs, simulated, turns),
        "load_at_end": os.getloadavg()[0],
    }


def _claims(runs: Mapping[int, Sequence[Mapping[str, Any]]], simulated: Measured, turns: int) -> list[dict[str, Any]]:
    lived = Measured({n: [Figures(*(run[f] for f in Figures._fields)) for run in each] for n, each in runs.items()})
    found = []
    for claim in CLAIMS:
        if claim.name in JUDGED or (claim.name in SPREADS and turns > 1):
            ours, sim = claim.judge(lived), claim.judge(simulated)
            found.append(
                {
                    "claim": claim.name,
                    "text": claim.text,
                    "paper": claim.paper,
                    "sim": sim.text,
                    "live": ours.text,
                    "counts_as": claim.counts_as,
                    "reproduced": ours.holds,
                    "reproduced_in_sim": sim.holds,
                }
            )
    return found


def _named(number: int) -> str:
    scenario = SCENARIOS[number]
    return scenario.policy if scenario.d is None else f"{scenario.policy} d {scenario.d:.2f}"


def _row(run: Mapping[str, Any], divisor: float = 1.0) -> str:
    values = [run[f] / divisor for f in Figures._fields[:4]]
    return (
        f"fast mean {values[0]:.1f}, p99 {values[1]:.0f}; slow mean {values[2]:.1f}, p99 {values[3]:.0f}; "
        f"{run['events']:,.0f} events; {run['migrations']:.4g} moves"
    )


def lines(result: Mapping[str, Any]) -> list[str]:
    """For people."""
    shape = result["shape"]
    where = "in network namespaces" if result["namespaces"] else "on loopback: no namespaces were made"
    loads = [load for each in result["runs"].values() for run in each for load in run["load_average"]]
    out = [
        f"six hosts {where}; {shape['workers']} workers with two copies each; {shape['minutes']:g} minutes of the schedule at "
        f"{shape['speed']:g} times its speed and {shape['scale']:g} of its rates; limit 1; {result['turns']} run(s) of each",
        f"one machine of {result['machine']['cores']} cores for all of it, whose load average was {min(loads):.1f} to {max(loads):.1f} "
        "before and after the runs",
        "each copy processed each event once in all runs, and the sums that went along with moved state were right",
        "",
        "ms; sim: mean of its seeds at the schedule's own speed and full rates; times divided by the speed in the line below",
    ]
    for number, runs in result["runs"].items():
        name = _named(int(number))
        out += [f"  {name:20} live  {_row(run)}" for run in runs]
        sim = result["sim"][number]
        out.append(f"  {'':20} sim   {_row(sim)}")
        out.append(
            f"  {'':20} sim / {shape['speed']:g}  {_row(sim, shape['speed']).rpartition('; ')[0].rpartition('; ')[0]}"
        )
    moves = sorted(ms for each in result["runs"].values() for run in each for ms in run["move_ms"])
    if moves:
        out.append(f"a move took {moves[len(moves) // 2]:.0f} ms (median; {moves[0]:.0f} to {moves[-1]:.0f})")
    return [*out, "", "claims that these runs can show", *claim_lines(result["claims"])]
