"""One picture of one report table: bars for labels with a number, lines over time."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import UsageError
from esault.spark.report import ReportTable, cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot"]

_BARS = 40
_LINES = 6


def plot(report: ReportTable, folder: str) -> str | None:
    """A PNG of the report in `folder`, which is made; its path, or None when the report has nothing to draw.

    A time in the first column makes lines; else the first text and the first number make bars. UsageError when
    matplotlib is missing or the folder cannot be written.
    """
    numbers = [i for i, kind in enumerate(report.kinds) if kind == "number"]
    labels = [i for i, kind in enumerate(report.kinds) if kind == "text"]
    over_time = report.kinds[:1] == ("time",)
    if not report.rows or not numbers or not (over_time or labels):
        return None
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install 'esault[spark]'") from None
    bars = min(len(report.rows), _BARS)
    figure = Figure(figsize=(8, 4.5 if over_time else 1.5 + 0.25 * bars), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if over_time:
        _lines(axes, report, numbers)
        axes.yaxis.set_major_formatter(_readable)
        axes.grid(alpha=0.3)
    else:
        _bars(axes, report, labels[0], numbers[0], bars)
        axes.xaxis.set_major_formatter(_readable)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(report.name)
    path = os.path.join(folder, f"{file_name(report.name)}.png")
    try:
        os.makedirs(folder, exist_ok=True)
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise UsageError(f"{path}: the plot cannot be written ({error.strerror})") from error
    return path


def _lines(axes: Axes, report: ReportTable, numbers: Sequence[int]) -> None:
    rows = sorted((row for row in report.rows if row[0] is not None), key=lambda row: row[0])
    moments = [row[0] for row in rows]
    for i in numbers[:_LINES]:
        axes.plot(moments, [_height(row[i]) for row in rows], label=_plain(report.columns[i]), marker=".")
    axes.set_xlabel(f"{_plain(report.columns[0])} (UTC)")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.tick_params(axis="x", rotation=30)
    if len(numbers) > 1:
        axes.legend()
    else:
        axes.set_ylabel(_plain(report.columns[numbers[0]]))


def _bars(axes: Axes, report: ReportTable, label: int, number: int, bars: int) -> None:
    rows = report.rows[:bars]
    places = range(len(rows))
    axes.barh(list(places), [_height(row[number]) for row in rows])
    axes.set_yticks(list(places), [_plain(cell(row[label])) for row in rows])
    axes.invert_yaxis()  # the first row on top, as in the table
    axes.set_xlabel(_plain(report.columns[number]))
    if bars < len(report.rows):
        axes.set_ylabel(f"the first {bars} of {len(report.rows)} rows")


def _readable(number: float, _: object = None) -> str:
    """As in the table: 120,000."""
    return f"{number:,.10g}"


def _height(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def file_name(name: str) -> str:
    """A report's name as that of a file, without an ending; reports may differ only in what is replaced."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "report"
    return plain if plain == name.replace(" ", "-") else f"{plain}-{zlib.crc32(name.encode()):08x}"
