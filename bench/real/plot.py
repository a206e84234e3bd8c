"""The plot of bench real: rows a second and processor seconds of each kind of work, an engine a bar; lines: least to most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.kit.plotting import pyplot, saved
from bench.kit.result import COLOURS
from bench.real.run import PLAIN, is_ours

__all__ = ["draw"]

COLUMNS = 4
#: figure -> its unit, and how many of its own unit are one of that
PANELS = {
    "rows_per_second": ("thousand rows/s", 1e3),
    "processor_seconds_per_million": ("processor s per million", 1.0),
}


def _colour(engine: str) -> str:
    if is_ours(engine):
        return COLOURS["esault"]
    return COLOURS["peer, no Python in the loop" if engine == PLAIN else "peer"]


def draw(path: Path, found: dict[str, Any]) -> bool:
    """Write the plot; False where matplotlib is not installed or nothing was measured."""
    plots = pyplot()
    if plots is None:
        return False

    panels = [
        (name, figure, {engine: its[figure] for engine, its in work["engines"].items() if "missing" not in its})
        for name, work in found.items()
        if "missing" not in work
        for figure in PANELS
    ]
    if not panels:
        return False
    rows = -(-len(panels) // COLUMNS)
    figure_, axes = plots.subplots(rows, COLUMNS, figsize=(4.5 * COLUMNS, 1.9 * rows), squeeze=False)
    for place in axes.flat[len(panels) :]:
        place.axis("off")
    for place, (name, figure, bars) in zip(axes.flat, panels):
        title, unit = PANELS[figure]
        medians = [bar["median"] / unit for bar in bars.values()]
        spread = [
            [(bar["median"] - bar["least"]) / unit for bar in bars.values()],
            [(bar["most"] - bar["median"]) / unit for bar in bars.values()],
        ]
        place.barh([*bars], medians, xerr=spread, color=[_colour(engine) for engine in bars], capsize=3)
        place.set_title(f"{name}: {title}", fontsize=10)
        place.tick_params(labelsize=8)
        place.invert_yaxis()
    return saved(figure_, path)
