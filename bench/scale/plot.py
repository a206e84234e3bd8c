"""The plot of `bench/scale/__main__.py`: rate and efficiency, cost, start-up, and the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.kit.plotting import pyplot, saved

__all__ = ["draw"]

BLUE, GREY, RED, GREEN = "#4477aa", "#999999", "#cc6677", "#228833"


def _line(axes: Any, numbers: list[int], figures: list[dict[str, float]], name: str, colour: str) -> None:
    middle = [f["median"] for f in figures]
    spread = ([f["median"] - f["least"] for f in figures], [f["most"] - f["median"] for f in figures])
    axes.errorbar(numbers, middle, yerr=spread, label=name, color=colour, marker="o", markersize=4, capsize=3)


def _doubling(axes: Any, numbers: list[int], title: str, across: str = "sub-units") -> None:
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{n:,}".replace(",", " ") for n in numbers])
    axes.minorticks_off()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
    axes.legend(fontsize=8, frameon=False)


def draw(
    path: Path,
    slept: dict[int, Any],
    uneven: dict[int, Any],
    paced: dict[int, Any],
    probed: dict[int, Any],
    table: dict[int, Any],
) -> bool:
    """Four panels; False where matplotlib is not installed."""
    plots = pyplot()
    if plots is None:
        return False

    figure, all_axes = plots.subplots(1, 4, figsize=(18, 3.8))
    numbers = list(slept)
    axes = all_axes[0]
    _line(axes, numbers, [slept[n]["efficiency"] for n in numbers], "keys even over the ring", BLUE)
    if uneven:
        _line(axes, list(uneven), [uneven[n]["efficiency"] for n in uneven], "keys as the hash has them", GREY)
        _line(axes, list(uneven), [uneven[n]["efficiency_corrected"] for n in uneven], "... by the fullest", RED)
    axes.axhline(0.9, color="#bbbbbb", linewidth=0.8, linestyle=":")
    _doubling(axes, numbers, "efficiency, 5 ms slept per tuple")
    axes = all_axes[1]
    numbers = list(paced)
    for role, colour in (("sub-units", BLUE), ("spout", GREEN), ("control", RED)):
        _line(axes, numbers, [paced[n]["cpu_us_per_tuple"][role] for n in numbers], role, colour)
    _line(axes, numbers, [probed[n]["cpu_us_per_tuple"]["control"] for n in numbers], "control, probing", GREY)
    _doubling(axes, numbers, "CPU per tuple, us, at a fixed rate")
    axes = all_axes[2]
    _line(axes, numbers, [paced[n]["start_up_seconds"] for n in numbers], "command to first result", BLUE)
    _doubling(axes, numbers, "start-up, s")
    axes = all_axes[3]
    sizes = list(table)
    for figure_name, name, colour in (
        ("uncached_ns", "key not in cache", BLUE),
        ("cached_ns", "key in cache", GREEN),
        ("route_row_ns", "row routed, key in cache", RED),
    ):
        _line(axes, sizes, [table[n][figure_name] for n in sizes], name, colour)
    _doubling(axes, sizes, "look-up in the output table, ns", "intervals")
    return saved(figure, path)
