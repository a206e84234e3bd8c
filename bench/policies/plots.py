"""Plots of the policies bench; matplotlib may be missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.kit.plotting import NO_PLOTS, pyplot, saved

__all__ = ["draw_compare", "draw_live", "draw_sweep"]

#: the ones to look for; the others are grey
COLOURS = {
    "auto": "#cc3311",
    "probe": "#4477aa",
    "esault": "#aa3377",
    "ds2 quick": "#228833",
    "flink quick": "#ccbb44",
    "hpa quick": "#66ccee",
    "fixed peak": "#000000",
}
COLUMNS = 4


def draw_compare(folder: Path, rows: Sequence[Mapping[str, Any]], model: str) -> str:
    """Write compare_MODEL.png: for each load p99 against sub-units on average, a point for each policy. Says what was written."""
    plots = pyplot()
    if plots is None:
        return NO_PLOTS
    loads = list(dict.fromkeys(r["load"] for r in rows if r["model"] == model))
    high = math.ceil(len(loads) / COLUMNS)
    figure, axes = plots.subplots(high, COLUMNS, figsize=(3.4 * COLUMNS, 2.7 * high), squeeze=False)
    for place, name in zip(axes.flat, loads):
        for row in rows:
            if row["load"] != name or row["model"] != model:
                continue
            x, y = row["figures"]["workers"]["median"], row["figures"]["p99_ms"]["median"]
            colour = COLOURS.get(row["policy"], "#bbbbbb")
            place.plot(
                x,
                max(y, 1.0),
                "o",
                color=colour,
                markersize=7 if row["front"] else 4,
                zorder=3 if row["policy"] in COLOURS else 2,
            )
            if row["policy"] not in COLOURS and row["front"]:
                place.annotate(row["policy"], (x, max(y, 1.0)), fontsize=5)
        place.set_yscale("log")
        place.set_title(name, fontsize=8)
        place.tick_params(labelsize=6)
    for place in list(axes.flat)[len(loads) :]:
        place.axis("off")
    handles = [plots.Line2D([], [], marker="o", linestyle="", color=c, label=n) for n, c in COLOURS.items()]
    handles.append(plots.Line2D([], [], marker="o", linestyle="", color="#bbbbbb", label="others"))
    figure.legend(handles=handles, ncol=len(handles), loc="lower center", fontsize=7)
    figure.suptitle(
        f"{model}: p99 latency in ms (up is worse) against sub-units on average; large: on the front", fontsize=9
    )
    saved(figure, folder / f"compare_{model}.png", rect=(0, 0.04, 1, 0.98))
    return f", compare_{model}.png"


def draw_sweep(folder: Path, cases: Sequence[Mapping[str, Any]]) -> str:
    """Write sweep.png: for each load p99 against sub-units on average; a line is the front of all sweeps."""
    plots = pyplot()
    if plots is None:
        return NO_PLOTS
    high = math.ceil(len(cases) / COLUMNS)
    figure, axes = plots.subplots(high, COLUMNS, figsize=(3.4 * COLUMNS, 2.7 * high), squeeze=False)
    for place, each in zip(axes.flat, cases):
        points = {p: (max(p99, 1.0), workers) for p, (p99, workers) in each["points"].items()}
        swept = {p: (max(p99, 1.0), workers) for p, (p99, workers) in each["swept"].items()}
        front = [points[p] for p in each["front"]]
        place.plot(
            [w for _, w in front], [p99 for p99, _ in front], color="#4477aa", linewidth=1, marker="o", markersize=3
        )
        for policy, (p99, workers) in {**swept, **points}.items():
            if policy == "auto":
                place.plot(workers, p99, "*", color="#cc3311", markersize=11, zorder=4)
            else:
                place.plot(workers, p99, "o", color="#bbbbbb", markersize=3)
            if policy in each["front"] and policy != "auto":
                place.annotate(policy.partition(":")[0], (workers, p99), fontsize=5)
        place.set_yscale("log")
        place.set_title(f"{each['load']} ({each['model']})" if each["model"] == "chain" else each["load"], fontsize=8)
        place.tick_params(labelsize=6)
    for place in list(axes.flat)[len(cases) :]:
        place.axis("off")
    figure.suptitle(
        "p99 in ms against sub-units on average; line: front of all sweeps; star: auto as it is", fontsize=9
    )
    saved(figure, folder / "sweep.png", rect=(0, 0, 1, 0.98))
    return ", sweep.png"


def draw_live(folder: Path, result: Mapping[str, Any]) -> str:
    """Write live.png: sub-units and latency over time, live and simulated, of each policy's first seed."""
    plots = pyplot()
    if plots is None or not result:
        return ""
    figure, axes = plots.subplots(
        2, len(result), figsize=(4.2 * len(result), 5), squeeze=False, sharex=True, sharey="row"
    )
    for column, (policy, runs) in enumerate(result.items()):
        for where, colour in (("live", "#cc3311"), ("sim", "#4477aa")):
            run = runs[where][0]
            until = max(s for s, *_ in run["lines"]) + 1
            times, widths = zip(*[*run["trace"], (until, run["trace"][-1][1])])
            axes[0][column].step(times, widths, where="post", color=colour, label=where)
            axes[1][column].plot(
                [s for s, *_ in run["lines"]], [1000 * m for _, _, m, _ in run["lines"]], color=colour, linewidth=1
            )
        axes[0][column].set_title(policy, fontsize=9)
        axes[1][column].set_yscale("log")
        axes[1][column].set_xlabel("seconds")
    axes[0][0].set_ylabel("sub-units")
    axes[1][0].set_ylabel("mean latency, ms")
    axes[0][0].legend(fontsize=8)
    saved(figure, folder / "live.png")
    return ", live.png"
