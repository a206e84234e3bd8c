"""One table of a report: its rows as Python values, and as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

__all__ = ["ReportTable", "render"]

#: rows that are shown; rows that are kept are more, see `analyze`
_SHOWN = 50
#: characters of one cell
_WIDE = 60


@dataclass(frozen=True)
class ReportTable:
    """The result of one report, at most `analyze.KEPT` rows of it."""

    name: str
    columns: tuple[str, ...]
    #: per column "number", "time" or "text"
    kinds: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: True when there were more rows than are kept
    cut: bool = False
    #: the picture's file, if one was made
    plot: str | None = None


def render(report: ReportTable) -> str:
    """The report as text: a title, a line of names, a line per row. Numbers stand right, times are UTC."""
    shown = report.rows[:_SHOWN]
    cells = [[cell(value) for value in row] for row in shown]
    heads = [_one_line(name) for name in report.columns]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
    lines = [report.name]
    lines.append(_line(heads, widths, report.kinds))
    lines.append("  ".join("-" * width for width in widths))
    lines += [_line(row, widths, report.kinds) for row in cells]
    left = len(report.rows) - len(shown)
    if report.cut:
        lines.append(f"... and more: the first {len(shown)} rows are shown")
    elif left:
        lines.append(f"... and {left:,} more rows")
    elif not report.rows:
        lines.append("(no rows)")
    if report.plot:
        lines.append(f"plot: {report.plot}")
    return "\n".join(lines)


def _line(row: list[str], widths: list[int], kinds: tuple[str, ...]) -> str:
    sides = [">" if kind == "number" else "<" for kind in kinds]
    return "  ".join(f"{text:{side}{width}}" for text, side, width in zip(row, sides, widths)).rstrip()


def cell(value: Any) -> str:
    """One value as text of one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Decimal):
        return f"{value.normalize():,f}"
    if isinstance(value, datetime):
        moment = value.astimezone(timezone.utc) if value.tzinfo else value
        return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{moment.microsecond:06d}" if moment.microsecond else "")
    if isinstance(value, date):
        return value.isoformat()
    return _one_line(str(value))


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        text = f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.1f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.3e}"


def _one_line(text: str) -> str:
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable if len(printable) <= _WIDE else f"{printable[: _WIDE - 3]}..."
