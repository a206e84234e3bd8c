"""A kind of windows of one's own: numbers and bounds, and the engine does the rest."""

from __future__ import annotations

import math
from datetime import datetime, timezone

import pytest

import esault.windows
from esault import Bolt, Topology, TopologyError, skip
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.window import WindowKind
from esault.topology.window_kinds import WINDOW_KINDS
from esault.windows import CountWindow, TimeWindow, TumblingWindow, Window


class Months(TimeWindow):
    """Calendar months, UTC."""

    def indices(self, time):
        at = datetime.fromtimestamp(time, timezone.utc)
        month = 12 * at.year + at.month - 1
        return range(month, month + 1)

    def window(self, index):
        return Window(*(datetime(m // 12, m % 12 + 1, 1, tzinfo=timezone.utc).timestamp() for m in (index, index + 1)))


class Shifted(TumblingWindow):
    """Derives from one of the engine's kinds, and moves its bounds by one second."""

    def indices(self, time):
        first = math.floor((time - 1) / self.size)
        return range(first, first + 1)

    def window(self, index):
        return Window(index * self.size + 1, (index + 1) * self.size + 1)


class Count(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1

    def finish(self):
        self.emit(self.key, (tuple(self.window), self.count))


def counts(kind, times):
    t = Topology("t")
    rows = t.spout("in", Items([("k", at) for at in times]))
    rows.window("counted", Count, kind, time=float)
    local = LocalRuntime(t)
    local.run_until_drained()
    return [value for _, value in local.emitted("counted")]


def at(*date):
    return datetime(*date, tzinfo=timezone.utc).timestamp()


def test_months_are_windows():
    times = [at(2024, 1, 31, 23), at(2024, 2, 1), at(2024, 2, 29, 12), at(2024, 12, 31), at(2025, 1, 1)]
    january, february, march = at(2024, 1, 1), at(2024, 2, 1), at(2024, 3, 1)
    assert counts(Months(), times) == [
        ((january, february), 1),
        ((february, march), 2),
        ((at(2024, 12, 1), at(2025, 1, 1)), 1),
        ((at(2025, 1, 1), at(2025, 2, 1)), 1),
    ]


def test_one_that_derives_from_the_engines_is_asked_for_its_bounds():
    assert counts(Shifted(10), [1, 10.5, 11, 12]) == [((1, 11), 2), ((11, 21), 2)]


class RestOfDay(TimeWindow):
    """From each hour on until midnight."""

    def indices(self, time):
        hour = int(time // 3600)
        return range(hour - hour % 24, hour + 1)

    def window(self, index):
        return Window(index * 3600, (index // 24 + 1) * 86400)


def test_one_whose_windows_end_together_keeps_those_of_which_a_tuple_failed_in_another():
    class Refuses(Count):
        def process(self, key, value):
            if self.window.start == 7200:
                raise ValueError(value)
            super().process(key, value)

    t = Topology("t")
    rows = t.spout("in", Items([("k", 3600), ("k", 7200)]))
    rows.window("counted", Refuses, RestOfDay(), time=float, on_error=skip())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert local.emitted("counted") == [("k", ((start, 86400), 1)) for start in (0, 3600)]


def test_what_says_nothing_of_its_windows_is_refused():
    class Odd(WindowKind):
        pass

    with pytest.raises(TopologyError, match="Odd says nothing of its windows; derive it from TimeWindow"):
        counts(Odd(), [1])


def test_the_kinds_are_exported_and_named():
    assert {kind.__name__ for kind in WINDOW_KINDS} < set(vars(esault.windows)["__all__"])
    assert [kind for kind in WINDOW_KINDS if not kind.timed] == [CountWindow]
    with pytest.raises(TopologyError, match="CountWindow lacks its size; write ") as error:
        counts(CountWindow, [1])
    assert "CalendarWindow(unit)" in str(error.value) and "SlidingWindow(size, every)" in str(error.value)
    assert all(f" {kind.__name__}(" in str(error.value) for kind in WINDOW_KINDS)
