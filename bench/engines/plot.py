"""The plot of bench engines: throughput, sustained rate and latency of each topology, an engine a colour; lines: least to most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.kit.plotting import pyplot, saved
from bench.kit.result import COLOURS

__all__ = ["bars", "draw"]

#: engine -> its colour
ENGINES = {
    "actors": COLOURS["esault"],
    "Spark engine": COLOURS["peer"],
    "plain Spark SQL, one batch": COLOURS["peer, no Python in the loop"],
}
ACTORS, SPARK, BATCH = ENGINES
#: median, least and most
Spread = tuple[float, float, float]
TITLES = (
    "thousand tuples/s, closed loop",
    "thousand tuples/s, sustained (open loop)",
    "p50 of latency at the set rate, ms",
    "p99 of latency at the set rate, ms",
)


def bars(each: dict[str, Any]) -> list[dict[str, Spread]]:
    """Return what there is to draw of a topology, for each title: engine -> (median, least, most)."""
    actors, spark, sql = (each.get(name, {}) for name in ("actors", "spark", "sql"))
    speed, kept_up = "tuples_per_second", "sustained_tuples_per_second"
    panels = (
        {
            ACTORS: _spread(actors.get(speed), 1e3),
            SPARK: _spread(spark.get(speed), 1e3),
            BATCH: _spread(sql.get(speed), 1e3),
        },
        {ACTORS: _spread(actors.get(kept_up), 1e3), SPARK: _spread(spark.get(kept_up), 1e3)},
        *({ACTORS: _spread(actors.get(f"{p}_ms")), SPARK: _spread(spark.get(f"{p}_ms"))} for p in ("p50", "p99")),
    )
    return [{engine: value for engine, value in panel.items() if value is not None} for panel in panels]


def _spread(figure: dict[str, float] | float | None, unit: float = 1.0) -> Spread | None:
    """Of several runs or of one; None where there is none."""
    if figure is None:
        return None
    if not isinstance(figure, dict):
        return figure / unit, figure / unit, figure / unit
    return figure["median"] / unit, figure["least"] / unit, figure["most"] / unit


def draw(path: Path, found: dict[str, Any]) -> bool:
    """Write the plot; False where matplotlib is not installed or nothing was measured."""
    plots = pyplot()
    if plots is None:
        return False

    measured = {name: bars(each) for name, each in found.items() if "actors" in each}
    if not measured:
        return False
    figure, axes = plots.subplots(2, 2, figsize=(13, 2.6 + 1.5 * len(measured)))
    for i, (place, title) in enumerate(zip(axes.flat, TITLES)):
        engines = [engine for engine in ENGINES if any(engine in panels[i] for panels in measured.values())]
        height = 0.8 / max(1, len(engines))
        for row, panels in enumerate(measured.values()):
            for j, engine in enumerate(engines):
                if engine not in panels[i]:
                    continue
                value, least, most = panels[i][engine]
                at = row + (j - (len(engines) - 1) / 2) * height
                error = [[value - least], [most - value]] if most > least else None
                place.barh(at, value, height * 0.9, xerr=error, capsize=3, color=ENGINES[engine])
                place.annotate(
                    f" {value:,.3g}" if value < 100 else f" {value:,.0f}", (most, at), va="center", fontsize=8
                )
        rates = [f"{name}\n{found[name]['rate']:,.0f}/s" if "latency" in title else name for name in measured]
        place.set_yticks(range(len(measured)), rates, fontsize=9)
        place.set_ylim(len(measured) - 0.5, -0.5)
        place.set_title(title, fontsize=10)
        if "latency" in title:
            place.set_xscale("log")
        place.margins(x=0.15)
        if "latency" in title:
            place.set_xlim(left=0.1)
    patches = [plots.Rectangle((0, 0), 1, 1, color=colour) for colour in ENGINES.values()]
    figure.legend(patches, [*ENGINES], loc="lower center", ncols=len(ENGINES), fontsize=9, frameon=False)
    return saved(figure, path, rect=(0, 0.05, 1, 1))
