"""The timeline of a run that is looked at from outside."""

from __future__ import annotations

from esault.ui.web.other_runs import Windows


class Told:
    """Keeps what a history is told."""

    def __init__(self):
        self.windows, self.changes = [], []

    def window(self, t, units):
        self.windows.append((t, units))

    def change(self, change):
        self.changes.append(change["n"])


def status(seconds, tuples=0, changes=0, phase="running"):
    unit = {
        "name": "count",
        "kind": "bolt",
        "tuples_in": tuples,
        "p50_ms": 1.0,
        "p99_ms": 2.0,
        "sub_units": 3,
        "backlog": 4,
    }
    return {"phase": phase, "seconds": seconds, "changes": changes, "units": [unit]}


def answer(changes):
    return {"changes": [{"n": n} for n in range(changes)], "widths": {"count": [[0.0, 1], [5.0, 3], [99.0, 7]]}}


def test_widths_are_known_from_the_beginning_and_rates_since_the_first_look():
    told = Told()
    windows = Windows(told)
    assert not windows.asks_for_history(status(0.0, phase="starting"))
    assert windows.asks_for_history(status(10.0, 100, 2))
    windows.begin(answer(2), status(10.0, 100, 2))
    for seconds, tuples in ((10.0, 100), (10.5, 300), (12.0, 500), (12.5, 500)):
        windows.see(status(seconds, tuples, 2))
    nothing = [None, None, None]
    assert told.windows == [
        (0.0, {"count": [*nothing, 1, None]}),
        (5.0, {"count": [*nothing, 3, None]}),
        (12.0, {"count": [200.0, 1.0, 2.0, 3, 4]}),
    ]


def test_each_change_is_told_once():
    told = Told()
    windows = Windows(told)
    windows.begin(answer(2), status(10.0, changes=2))
    assert not windows.asks_for_history(status(11.0, changes=2))
    assert windows.asks_for_history(status(12.0, changes=3))
    windows.begin(answer(3), status(12.0, changes=3))
    assert told.changes == [0, 1, 2]
    assert len(told.windows) == 2


def test_what_begins_while_it_is_looked_at_has_no_past():
    told = Told()
    windows = Windows(told)
    windows.begin(answer(0), status(0.0))
    assert told.windows == []
