"""The experiment of Sousa's dissertation (2014), chapter 4: what its migrations bring beside random ones and none.

Scenarios 1 to 13 run in model.py, decided by the plain text ("reference") and by the
engine's policies `migration` and `random` ("sim"), each with memory in the test of destinations (the text lists it
among the resources) and without: copies that all take the same memory may only go to nodes with fewer of them.
Nothing of it is live: that is in live/. Times in ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.policies.claims import claim_lines
from bench.policies.migration.claims import CLAIMS
from bench.policies.migration.model import Figures
from bench.policies.migration.scenarios import SCENARIOS, Measured, Setting, measure

__all__ = ["experiment", "lines"]

PAPER = "R. D. Sousa, Escalonamento Adaptativo para Sistemas de Processamento Contínuo de Eventos, UFCG, 2014"


def experiment(quick: bool, seeds: Sequence[int]) -> dict[str, Any]:
    """All scenarios for these seeds, the first alone if `quick`.

    Of each seed 46 runs of about half a second.
    """
    seeds = list(seeds)[:1] if quick else list(seeds)
    measured, same = measure(seeds)
    claims = []
    for memory in (True, False):
        for claim in CLAIMS:
            reference, sim = (claim.judge(measured[who, memory]) for who in ("reference", "sim"))
            claims.append(
                {
                    "claim": claim.name if memory else f"{claim.name}, without memory",
                    "text": claim.text,
                    "paper": claim.paper,
                    "reference": reference.text,
                    "sim": sim.text,
                    "live": None,
                    "counts_as": claim.counts_as,
                    "reproduced": sim.holds,
                }
            )
    return {
        "paper": PAPER,
        "seeds": seeds,
        "same_moves": same,
        "tables": [_table(measured, memory) for memory in (True, False)],
        "claims": claims,
    }


def _table(measured: Mapping[Setting, Measured], memory: bool) -> dict[str, Any]:
    rows = []
    for number, (policy, d, limit, varied) in SCENARIOS.items():
        for who in ("reference", "sim"):
            m = measured[who, memory]
            figures = {
                f: {"mean": m.mean(number, f), "least": min(m.all(number, f)), "most": max(m.all(number, f))}
                for f in Figures._fields
            }
            rows.append(
                {
                    "scenario": number,
                    "policy": policy,
                    "d": d,
                    "limit": limit,
                    "load": "varied" if varied else "stable",
                    "by": who,
                    **figures,
                }
            )
    title = f"{'with' if memory else 'without'} memory in the test of destinations"
    return {"title": title, "columns": list(rows[0]), "rows": rows}


def lines(result: Mapping[str, Any]) -> list[str]:
    """For people: means over the seeds."""
    same = result["same_moves"]
    out = [
        result["paper"],
        f"seeds {', '.join(map(str, result['seeds']))}; in {same['same']} of {same['runs']} runs the policies wanted "
        f"exactly the moves of the reference; live: the part migration_live",
    ]
    for table in result["tables"]:
        out += [
            "",
            f"{table['title']}, ms",
            f"  {'scenario':32}{'fast mean':>10}{'p99':>9}{'slow mean':>11}{'p99':>9}{'events':>11}{'moves':>7}",
        ]
        for row in table["rows"]:
            if row["by"] != "sim":
                continue
            d = f" d {row['d']:.2f}" if row["d"] is not None else ""
            limit = "" if row["policy"] == "none" else ", no limit" if not row["limit"] else f", limit {row['limit']}"
            name = f"{row['scenario']:>2} {row['load']}, {row['policy']}{d}{limit}"
            means = [row[f]["mean"] for f in Figures._fields]
            out.append(
                f"  {name:32}{means[0]:10.1f}{means[1]:9.0f}{means[2]:11.1f}{means[3]:9.0f}{means[4]:11,.0f}{means[5]:7.1f}"
            )
    return [*out, "", "claims (limit 1 unless said)", *claim_lines(result["claims"])]
