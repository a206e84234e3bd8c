"""Lines that were late since their file is read behind others, and what reads files side by side."""

from __future__ import annotations

from esault.report import Report
from esault.topology.plan import Plan
from esault.topology.split_source import SplitSource

__all__ = ["late_lines"]


def late_lines(plan: Plan, report: Report) -> list[str]:
    """Return a sentence for each source whose readers read several files, one behind the other, where tuples of it were late.

    A reader has one watermark. What the first file has brought makes all of the second one late, if both are of the same hours.
    """
    said = []
    for name, unit in plan.units.items():
        if unit.spout is None or not unit.spout.parallel or isinstance(unit.spout, SplitSource):
            continue
        pieces = unit.spout.pieces()
        had = report.units[name].parallelism
        if pieces is None or len(pieces) <= (had[-1][1] if had else unit.parallelism):
            continue
        late = {each: told.late for each, told in report.units.items() if told.late and name in plan.above(each)}
        if late:
            counts = ", ".join(f"{n:,} of {each!r}" for each, n in late.items())
            said.append(
                f"late tuples ({counts}): {name!r} reads {len(pieces):,} files, each reader one behind the other, so what is older than "
                "lines of a file before it may be late; Directory(path, every=None) reads files side by side, and so does a reader for "
                f"each: parallelism={len(pieces)}"
            )
    return said
