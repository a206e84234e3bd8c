"""Views of a whole run, with one aligned window for each unit, for tests of policies that judge units together."""

from __future__ import annotations

from esault.elasticity.action import NoChange
from esault.elasticity.view import RunView, Sample, UnitView, UnitWindow
from esault.topology.plan import UnitPlan


def run(now, units, senders, seconds=10.0, free=100, managed=None, started=0.0):
    """`units`: name -> figures of its window, and `width`, `least`, `most`, `changing`, `changed_at`, `died_at`, `inputs`, `samples` (a
    list of dicts); those without senders are spouts. Counts may be given as rates with `rates=True`."""
    views = {}
    for name, given in units.items():
        figures = dict(given)
        width = figures.pop("width", 1)
        spout = not senders.get(name)
        plan = UnitPlan(
            name,
            "spout" if spout else "bolt",
            objects="part" if spout else "key",
            inputs=tuple(figures.pop("inputs", ())),
            min_parallelism=figures.pop("least", 1),
            max_parallelism=figures.pop("most", 50),
        )
        changing, changed_at = figures.pop("changing", False), figures.pop("changed_at", None)
        died_at = figures.pop("died_at", None)
        samples = figures.pop("samples", [{}] * width)
        if figures.pop("rates", False):
            for figure in ("arrivals", "processed", "emitted", "busy", "dropped"):
                if figure in figures:
                    figures[figure] *= seconds
        window = UnitWindow(now - seconds, now, width=width, **figures)
        views[name] = UnitView(
            name,
            plan,
            tuple(Sample(i + 1, window=seconds, **s) for i, s in enumerate(samples)),
            changing,
            changed_at,
            window=window,
            died_at=died_at,
        )
    bolts = tuple(n for n in units if senders.get(n))
    return RunView(
        now,
        now - started,
        views,
        free_slots=free,
        managed=bolts if managed is None else tuple(managed),
        senders={n: tuple(senders.get(n, ())) for n in units},
    )


def widths(actions):
    """unit -> wanted width."""
    return {a.unit: a.n for a in actions if not isinstance(a, NoChange)}
