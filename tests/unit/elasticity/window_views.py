"""Views of whole runs, window by window, for tests of policies that judge a topology."""

from __future__ import annotations

from esault.elasticity.view import RunView, Sample, UnitView, UnitWindow
from esault.topology.plan import UnitPlan


def unit(name, width=1, kind="bolt", least=1, most=24, changing=False, buffer=None, spouts=(), window=None, **counts):
    """`counts`: figures of its window, which ends at `end` and lasts `seconds`."""
    if window is None:
        end, seconds = counts.pop("end", 10.0), counts.pop("seconds", 10.0)
        window = UnitWindow(end - seconds, end, width=width, **counts)
    plan = UnitPlan(name, kind, min_parallelism=least, max_parallelism=most)
    samples = tuple(Sample(i) for i in range(width))
    return UnitView(name, plan, samples, changing, spouts=tuple(spouts), window=window, buffer=buffer)


def run(units, senders=None, free=100, managed=None):
    """`units`: senders first; `managed`: all bolts unless it is said."""
    named = {u.name: u for u in units}
    now = max((u.window.end for u in units if u.window is not None), default=0.0)
    bolts = tuple(n for n, u in named.items() if u.plan.kind == "bolt")
    return RunView(
        now,
        now,
        named,
        (),
        free,
        bolts if managed is None else managed,
        {k: tuple(v) for k, v in (senders or {}).items()},
    )
