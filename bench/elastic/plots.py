"""The paper's Figs. 6 and 7, drawn from our runs; matplotlib may be missing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.elastic.shape import Shape
from bench.kit.plotting import NO_PLOTS, pyplot, saved

__all__ = ["draw"]

COLOURS = {"esault": "#cc6677", "probe": "#4477aa"}


def draw(
    folder: Path,
    live: Mapping[str, Sequence[Mapping[str, Any]]],
    model: Mapping[str, Sequence[Mapping[str, Any]]],
    shape: Shape,
) -> str:
    """Write fig6.png and fig7.png; says which."""
    plots = pyplot()
    if plots is None:
        return NO_PLOTS

    until = max(t for run in live["esault"] for t, *_ in run["lines"]) + 1
    figure, (rates, latencies, widths) = plots.subplots(3, 1, figsize=(9, 7.5), sharex=True)
    times = list(range(until))
    rates.plot(times, [shape.rate(t + 0.5) for t in times], color="black", linewidth=1)
    rates.set_ylabel("tuples/s")
    for name, colour in COLOURS.items():
        run = live[name][0]
        latencies.plot(
            [s for s, *_ in run["lines"]],
            [1000 * m for _, _, m, _ in run["lines"]],
            color=colour,
            label=name,
            linewidth=0.9,
        )
        widths.step(*_steps(run["trace"], until), where="post", color=colour, label=f"{name}, live")
        widths.step(
            *_steps(model[name][0]["trace"], until), where="post", color=colour, linestyle=":", label=f"{name}, model"
        )
    latencies.axhline(100, color="grey", linestyle="--", linewidth=0.8)
    latencies.set_yscale("log")
    latencies.set_ylabel("mean latency, ms")
    latencies.legend(fontsize=8)
    widths.set_ylabel("sub-units")
    widths.set_xlabel("seconds of the paper's time; seed 1")
    widths.legend(fontsize=8)
    figure.suptitle("Elastic from two sub-units (the paper's Fig. 6)", fontsize=11)
    saved(figure, folder / "fig6.png")

    figure, (few, many, bars) = plots.subplots(1, 3, figsize=(13, 4))
    for name in live:
        run = live[name][0]
        place = few if name in ("fixed 1", "fixed 2") else many
        seen = [(s, 1000 * m) for s, _, m, _ in run["lines"] if s < 250]
        for axes in (few, many) if not name.startswith("fixed") else (place,):
            axes.plot([s for s, _ in seen], [m for _, m in seen], label=name, linewidth=0.9, color=COLOURS.get(name))
    for axes, title in ((few, "(a) too few"), (many, "(b) enough")):
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("seconds of the paper's time; seed 1")
        axes.set_ylabel("mean latency, ms")
        axes.legend(fontsize=7)
    names = [n for n in live if n not in ("fixed 1", "fixed 2")]
    for i, (what, colour) in enumerate((("mean", "#4477aa"), ("sd", "#ddcc77"), ("max", "#cc6677"))):
        heights = [statistics.median(run["plateau"][what] for run in live[n]) for n in names]
        bars.bar([x + 0.27 * i for x in range(len(names))], heights, width=0.25, label=what, color=colour)
    bars.set_xticks([x + 0.27 for x in range(len(names))], names, fontsize=8)
    bars.set_ylabel("ms; of the means of each second, median over seeds")
    bars.set_title("(c) 60 to 110 s", fontsize=10)
    bars.set_yscale("log")
    bars.legend(fontsize=8)
    figure.suptitle("Fixed against elastic (the paper's Fig. 7)", fontsize=11)
    saved(figure, folder / "fig7.png")
    return ", fig6.png, fig7.png"


def _steps(trace: Sequence[tuple[float, int]], until: float) -> tuple[list[float], list[int]]:
    inside = [(t, n) for t, n in trace if t < until]
    return [*(t for t, _ in inside), until], [*(n for _, n in inside), inside[-1][1]]
