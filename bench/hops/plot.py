"""The plot of `bench/hops/__main__.py`: a bar for each hop, its parts side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.hops.parts import PARTS, ROW_IDS

__all__ = ["draw"]

#: of a bar's length; smaller parts have no name in it
NAMED = 0.05


def draw(path: Path, workloads: dict[str, Any]) -> bool:
    """A panel for each workload; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(workloads), 1, figsize=(11, 1.2 + 2.4 * len(workloads)), squeeze=False)
    map_ = matplotlib.colormaps["tab20"]
    colours = {part: map_(number % 20) for number, part in enumerate(PARTS)}
    for axes, (title, found) in zip(panels[:, 0], workloads.items()):
        hops = found["hops"]
        longest = max(hop["sum_of_parts"] + max(0.0, hop["row_ids"]["median"]) for hop in hops.values())
        for name, hop in hops.items():
            left = 0.0
            for part, spread in hop["parts"].items():
                width = max(0.0, spread["median"])
                axes.barh(name, width, left=left, color=colours[part], edgecolor="white", linewidth=0.4)
                if width > NAMED * longest:
                    axes.text(left + width / 2, name, f"{part}\n{width:.0f}", ha="center", va="center", fontsize=7)
                left += width
            more = max(0.0, hop["row_ids"]["median"])
            axes.barh(name, more, left=left, color="none", edgecolor="#999999", hatch="//", linewidth=0.4)
        axes.invert_yaxis()
        axes.set_title(f"{title}; hatched: what row ids add", fontsize=10)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    handles.append(pyplot.Rectangle((0, 0), 1, 1, facecolor="none", edgecolor="#999999", hatch="//"))
    figure.legend(handles, [*PARTS, ROW_IDS], loc="center right", fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 0.87, 1))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
