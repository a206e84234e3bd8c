"""A result on disk: result.json, a table to read, a plot to look at."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench.kit.measure import PARTS
from bench.kit.plotting import pyplot, saved

__all__ = ["COLOURS", "Bar", "runs_before", "save", "work_before", "write", "write_with"]

#: by kind
COLOURS = {
    "esault": "#4477aa",
    "peer": "#999999",
    "peer, user code in Python": "#999999",
    "peer, no Python in the loop": "#ccbb44",
}


class Bar(NamedTuple):
    """A figure to draw: median, least and most; the kind gives the colour."""

    name: str
    median: float
    least: float
    most: float
    kind: str = ""

    @classmethod
    def of(cls, name: str, figure: dict[str, float], unit: float = 1.0, kind: str = "") -> Bar:
        """A bar for a summary, divided by `unit`."""
        median, least, most = (figure[part] / unit for part in PARTS)
        return cls(name, median, least, most, kind)


def runs_before(out: str, part: str, seed: int) -> list[dict[str, Any]]:
    """Return the runs that `part` of the result in folder `out` counts already. Raises SystemExit where one had this seed."""
    path = Path(out) / "result.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text()).get(part, []) if path.exists() else []
    if any(run["seed"] == seed for run in runs):
        raise SystemExit(f"{path}: seed {seed} is counted there already; say another --seed, or another --out")
    return runs


def work_before(out: str, runs: int, share: float, renewed: Iterable[str]) -> dict[str, Any]:
    """Return the parts under `work` of the result in folder `out`, if it is of as many runs of the same size; none else.

    Ends the command where it is of others and has parts that are not `renewed`: they would be lost.
    """
    path = Path(out) / "result.json"
    if not path.exists():
        return {}
    result = json.loads(path.read_text())
    if (result.get("runs"), result.get("share")) == (runs, share):
        return dict(result["work"])
    if left := sorted(set(result["work"]) - set(renewed)):
        raise SystemExit(
            f"{path} is of {result.get('runs')} runs at {result.get('share')} of the full size, and this would be of {runs} at "
            f"{share}: {', '.join(left)} would be lost; use another --out, or the same --runs, --quick and --scale"
        )
    return {}


def write(out: str, result: dict[str, Any], lines: list[str], panels: dict[str, list[Bar]], unit: str) -> None:
    """Write into folder `out` and print the table. `panels`: bars by title; drawn where matplotlib is installed."""
    write_with(out, result, lines, lambda path: _draw(path, panels, unit))


def save(out: str, result: dict[str, Any], lines: list[str]) -> None:
    """Write result.json and result.txt into folder `out`, each as a whole: a bench that is killed leaves what it wrote last."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("result.json", json.dumps(result)), ("result.txt", "\n".join(lines))):
        part = folder / f".{name}.part"
        part.write_text(text + "\n")
        os.replace(part, folder / name)


def write_with(
    out: str, result: dict[str, Any], lines: list[str], draw: Callable[[Path], bool], new: list[str] | None = None
) -> None:
    """The same with a plot of one's own: `draw(path)` says whether it could. `new`: the lines that have not been printed yet."""
    folder = Path(out)
    save(out, result, lines)
    print("\n".join(lines if new is None else new))
    drawn = draw(folder / "result.png")
    print(f"{folder}/result.json, result.txt{', result.png' if drawn else ' (no plot: matplotlib is not installed)'}")


def _draw(path: Path, panels: dict[str, list[Bar]], unit: str) -> bool:
    plots = pyplot()
    if plots is None:
        return False

    height = 1.2 + 0.3 * max(len(bars) for bars in panels.values())
    figure, axes = plots.subplots(1, len(panels), figsize=(4.5 * len(panels), max(3.5, height)), squeeze=False)
    for place, (title, bars) in zip(axes[0], panels.items()):
        spread = ([bar.median - bar.least for bar in bars], [bar.most - bar.median for bar in bars])
        colours = [COLOURS[bar.kind or ("peer" if bar.name.startswith("bytewax") else "esault")] for bar in bars]
        place.barh([bar.name for bar in bars], [bar.median for bar in bars], xerr=spread, color=colours, capsize=3)
        place.set_title(title, fontsize=10)
        place.set_xlabel(f"{unit}; line: least to most")
        place.invert_yaxis()
    kinds = dict.fromkeys(bar.kind for bars in panels.values() for bar in bars if bar.kind)
    if kinds:
        patches = [plots.Rectangle((0, 0), 1, 1, color=COLOURS[kind]) for kind in kinds]
        figure.legend(patches, list(kinds), loc="lower center", ncols=len(kinds), fontsize=8, frameon=False)
    return saved(figure, path, rect=(0, 0.06 if kinds else 0, 1, 1))
