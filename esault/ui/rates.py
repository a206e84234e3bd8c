"""From snapshots to what is shown: tuples per second, progress, numbers for people."""

from __future__ import annotations

from esault.control.report.summary import Snapshot, UnitSnapshot

__all__ = ["Rates", "percent", "short"]


class Rates:
    """Tuples per second by unit, from two snapshots at least `over` seconds apart."""

    def __init__(self, over: float = 0.5) -> None:
        self._over = over
        self._then: Snapshot | None = None
        self._rates: dict[str, float] = {}

    def update(self, snapshot: Snapshot) -> dict[str, float]:
        """The newest rates."""
        then = self._then
        if then is None:
            self._then = snapshot
        elif snapshot.now - then.now >= self._over:
            before = {u.name: _handled(u) for u in then.units}
            seconds = snapshot.now - then.now
            self._rates = {u.name: max(0.0, (_handled(u) - before.get(u.name, 0)) / seconds) for u in snapshot.units}
            self._then = snapshot
        return self._rates


def _handled(unit: UnitSnapshot) -> int:
    return unit.tuples_out if unit.kind == "spout" else unit.tuples_in


def short(number: float) -> str:
    """1234567 -> 1.23 M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:  # else it would be rounded to 1000 of the smaller one
            return f"{number / size:.3g} {suffix}"
    return f"{number:.0f}"


def percent(snapshot: Snapshot) -> float | None:
    """Return the share of the sources that has been read, 0 to 100; None where one of them cannot know."""
    parts = [u.progress for u in snapshot.units if u.kind == "spout"]
    if not parts or any(p is None for p in parts):
        return None
    done = sum(p[0] for p in parts if p)
    total = sum(p[1] for p in parts if p)
    return 100.0 * done / total if total else 100.0
