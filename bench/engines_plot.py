"""The plot of bench engines: throughput, sustained rate and latency of each topology, an engine a colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.result import COLOURS

__all__ = ["bars", "draw"]

#: engine -> its colour
ENGINES = {
    "actors": COLOURS["esault"],
    "Spark engine": COLOURS["peer"],
    "plain Spark SQL, one batch": COLOURS["peer, no Python in the loop"],
}
ACTORS, SPARK, BATCH = ENGINES
TITLES = (
    "thousand tuples/s, closed loop",
    "thousand tuples/s, sustained (open loop)",
    "p50 of latency at the set rate, ms",
    "p99 of latency at the set rate, ms",
)


def bars(each: dict[str, Any]) -> list[dict[str, float]]:
    """What there is to draw of a topology, for each title: engine -> value."""
    actors, spark, sql = (each.get(name, {}) for name in ("actors", "spark", "sql"))
    middle = lambda spread: (spread or {}).get("median")
    thousand = lambda rate: None if rate is None else rate / 1e3
    panels = (
        {
            ACTORS: thousand(middle(actors.get("tuples_per_second"))),
            SPARK: thousand(spark.get("tuples_per_second")),
            BATCH: thousand(sql.get("tuples_per_second")),
        },
        {
            ACTORS: thousand(actors.get("sustained_tuples_per_second")),
            SPARK: thousand(spark.get("sustained_tuples_per_second")),
        },
        *({ACTORS: middle(actors.get(f"{p}_ms")), SPARK: spark.get(f"{p}_ms")} for p in ("p50", "p99")),
    )
    return [{engine: value for engine, value in panel.items() if value is not None} for panel in panels]


def draw(path: Path, found: dict[str, Any]) -> bool:
    """Write the plot; False where matplotlib is not installed or nothing was measured."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    measured = {name: bars(each) for name, each in found.items() if "actors" in each}
    if not measured:
        return False
    figure, axes = pyplot.subplots(2, 2, figsize=(13, 2.6 + 1.5 * len(measured)))
    for i, (place, title) in enumerate(zip(axes.flat, TITLES)):
        engines = [engine for engine in ENGINES if any(engine in panels[i] for panels in measured.values())]
        height = 0.8 / max(1, len(engines))
        for row, panels in enumerate(measured.values()):
            for j, engine in enumerate(engines):
                value = panels[i].get(engine)
                at = row + (j - (len(engines) - 1) / 2) * height
                if value is None:
                    continue
                place.barh(at, value, height * 0.9, color=ENGINES[engine])
                place.annotate(
                    f" {value:,.3g}" if value < 100 else f" {value:,.0f}", (value, at), va="center", fontsize=8
                )
        rates = [f"{name}\n{found[name]['rate']:,.0f}/s" if "latency" in title else name for name in measured]
        place.set_yticks(range(len(measured)), rates, fontsize=9)
        place.set_ylim(len(measured) - 0.5, -0.5)
        place.set_title(title, fontsize=10)
        if "latency" in title:
            place.set_xscale("log")
        place.margins(x=0.15)
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in ENGINES.values()]
    figure.legend(patches, list(ENGINES), loc="lower center", ncols=len(ENGINES), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
