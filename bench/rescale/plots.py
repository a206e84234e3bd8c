"""The plot of the rescaling bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.kit.plotting import pyplot, saved

__all__ = ["draw"]

COLOURS = {"moved keys": "#cc6677", "other keys": "#4477aa", "stopped and started": "#ddaa33", "bytewax": "#999999"}
#: below this nothing is told apart, milliseconds
FLOOR = 0.1


def draw(path: Path, results: list[dict[str, Any]]) -> bool:
    """Write latency around a change, and the worst of it by number of keys; False where matplotlib is not installed."""
    plots = pyplot()
    if plots is None:
        return False

    half = [r for r in results if r["case"]["share"] == 0.5]
    shown = next((r for r in half if r["case"]["keys"] == 100_000), half[-1])
    figure, (left, right) = plots.subplots(1, 2, figsize=(11, 4))
    for name, runs in ((n, r) for n, r in shown["runs"].items() if r):
        points = runs[0]["timeline"]
        seconds = [p[0] for p in points]
        live = name.endswith("live")
        lines = {"other keys": 1, "moved keys": 2} if live else {_short(name): 1}
        for label, column in lines.items():
            drawn = [max(FLOOR, p[column]) for p in points]
            text = f"live split, {label}" if live else name
            left.plot(seconds, drawn, label=text, color=COLOURS[label], linewidth=1.2, zorder=3 if live else 2)
    left.set_yscale("log")
    left.set_xlabel("seconds since the request, by when a tuple was due")
    left.set_ylabel("largest latency, ms")
    left.set_title(f"1 -> 2, {shown['title']}", fontsize=10)
    left.legend(fontsize=8)
    labels = [f"{r['case']['keys']:,}" for r in half]
    for label, of in {
        "moved keys": lambda e: e["esault, live"]["split"]["moved_max_ms"],
        "other keys": lambda e: e["esault, live"]["split"]["untouched_during_max_ms"],
        "stopped and started": lambda e: e["esault, stopped and started"]["worst_ms"],
        "bytewax": lambda e: e.get("bytewax, stopped and resumed", {}).get("worst_ms"),
    }.items():
        found = [(text, of(r["engines"])) for text, r in zip(labels, half)]
        places, figures = [text for text, f in found if f], [f for _, f in found if f]
        if figures:
            medians = [f["median"] for f in figures]
            around = ([f["median"] - f["least"] for f in figures], [f["most"] - f["median"] for f in figures])
            right.errorbar(places, medians, yerr=around, marker="o", capsize=3, label=label, color=COLOURS[label])
    right.set_yscale("log")
    right.set_xlabel("keys; line: least to most")
    right.set_ylabel("worst latency, ms")
    right.set_title("1 -> 2 at half load", fontsize=10)
    right.legend(fontsize=8)
    return saved(figure, path)


def _short(name: str) -> str:
    return "bytewax" if name.startswith("bytewax") else "stopped and started"
