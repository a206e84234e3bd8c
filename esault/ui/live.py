"""The live view: a table of units that is drawn anew a few times a second, with what user code prints above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.counters import UnitCounts, counted, declared
from esault.ui.rates import Rates, percent, short

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LiveView", "picture"]


class LiveView:
    """Starts with the first snapshot, by when all processes have been forked."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console as RichConsole

        self._console = console or RichConsole()
        self._rates = Rates()
        self._live: Any = None

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self._console.print(f"[{mark}] {text}", markup=False, highlight=False)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._console.print(text, style="yellow", markup=False, highlight=False)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        from rich.live import Live

        shown = picture(snapshot, self._rates.update(snapshot), self._console.width)
        if self._live is None:
            # No thread of its own: it is drawn when there is something new.
            self._live = Live(shown, console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(shown, refresh=True)

    def close(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._live.stop()
            self._live = None


#: the table's columns, and those that a narrow terminal does without, in this order
_COLUMNS = ("unit", "sub-units", "tuples/s", "tuples", "p50 ms", "p99 ms", "waiting", "errors")
_DROPPED = ("p50 ms", "tuples", "errors", "p99 ms", "sub-units", "waiting")
_GAP = 2


def picture(snapshot: Snapshot, rates: dict[str, float], width: int = 120) -> Any:
    """The table and the lines below it, for rich; `width` is the terminal's, in columns."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = [_row(unit, rates) for unit in snapshot.units]
    wide = {name: max(len(row[name]) for row in [{name: name}, *rows]) for name in _COLUMNS}
    columns = list(_COLUMNS)
    for name in _DROPPED:
        if sum(wide[column] + _GAP for column in columns) - _GAP > width:
            columns.remove(name)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if name == "unit" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[name] for name in columns), style="red" if row["errors"] else "")
    state = "ending in order" if snapshot.draining else snapshot.phase
    below = f"{snapshot.topology}  {state}  {snapshot.seconds:.0f} s  {counted(snapshot.roots_open, 'batch', 'batches')} in flight"
    if snapshot.roots_replayed:
        below += f"  {snapshot.roots_replayed} sent again"
    for name, counter in declared(UnitCounts).items():
        many = sum(getattr(unit, name) for unit in snapshot.units)
        if many and counter.trouble and name not in _COLUMNS:
            below += f"  {short(many)} {name.replace('_', ' ')}"
    if snapshot.deaths:
        below += f"  {counted(snapshot.deaths, 'process', 'processes')} replaced"
    if snapshot.checkpoint:
        below += f"  checkpoint {snapshot.checkpoint}"
    if snapshot.restores:
        below += f"  went back {counted(snapshot.restores, 'time')}"
    parts: list[Any] = [table]
    parts += [Text(line, style="cyan", overflow="fold") for line in snapshot.scaling]
    done = percent(snapshot)
    if done is not None:
        below += f"  {done:.0f} % read"
    parts.append(Text(f"{below}  (Ctrl-C ends it in order)", style="dim"))
    if done is not None:  # the last line: a bar ends without a line break
        parts.append(ProgressBar(total=100, completed=done, width=min(50, width)))
    return Group(*parts)


def _row(unit: UnitSnapshot, rates: dict[str, float]) -> dict[str, str]:
    return {
        "unit": unit.name,
        "sub-units": str(unit.sub_units),
        "tuples/s": short(rates.get(unit.name, 0.0)),
        "tuples": short(unit.tuples_out if unit.kind == "spout" else unit.tuples_in),
        "p50 ms": f"{unit.p50_ms:.2f}" if unit.kind == "bolt" else "",
        "p99 ms": f"{unit.p99_ms:.2f}" if unit.kind == "bolt" else "",
        "waiting": short(unit.backlog),
        "errors": str(unit.errors) if unit.errors else "",
    }
