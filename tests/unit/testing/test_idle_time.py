"""Who has nothing to send: windows wait for it, or not, as was said."""

from __future__ import annotations

from windowed import Gather, Pass, at

from esault import EndOfStream, Spout, Topology, by_key, shuffle
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow


class Parts(Spout):
    """Each part gives its own list; None in it ends the part."""

    parallel = True

    def __init__(self, *lists):
        self.lists = lists
        self.next = 0

    def __deepcopy__(self, memo):
        return type(self)(*self.lists)

    def read(self, limit):
        mine = self.lists[self.context.part]
        if self.next < len(mine) and mine[self.next] is None:
            raise EndOfStream
        rows = [row for row in mine[self.next : self.next + limit] if row is not None]
        self.next += len(rows)
        return rows


def rows(first, last, key="a"):
    return [(key, {"at": i, "n": i}) for i in range(first, last)]


def closed(local):
    return sorted(row.value["start"] for row in local.landed("out"))


def timed(lists, **options):
    t = Topology("t")
    spout = t.spout("rows", Parts(*lists), parallelism=len(lists), time=at, **options)
    out = spout.bolt("pass", Pass, grouping=shuffle(), parallelism=2).window("w", Gather, TumblingWindow(10), time=at)
    out.sink("out", Collect())
    out["late"].sink("late", Collect())
    return LocalRuntime(t, settings=Settings(watch_values=False))


def test_windows_wait_for_a_reader_without_data_unless_it_may_be_idle():
    lists = rows(0, 35), []
    local = timed(lists)
    local.run_for(20)
    assert closed(local) == []
    local = timed((rows(0, 35), []), idle=8)
    local.run_for(7)
    assert closed(local) == []
    local.run_for(3)
    assert closed(local) == [0, 10, 20]


def test_a_reader_that_was_idle_is_waited_for_again():
    quick, slow = rows(0, 35), []
    local = timed((quick, slow), idle=5)
    local.run_for(10)
    assert closed(local) == [0, 10, 20]
    slow += rows(31, 36)
    local.run_for(1)
    quick += rows(35, 75)
    local.run_for(3)
    assert closed(local) == [0, 10, 20]  # the slow one is at 35
    local.run_for(5)
    assert closed(local) == [0, 10, 20, 30, 40, 50, 60]
    slow += rows(2, 3)
    local.run_for(1)
    assert [row.value["n"] for row in local.landed("late")] == [2]


def test_a_reader_that_is_at_its_end_is_not_waited_for_although_others_go_on():
    quick, ended = rows(0, 35), [*rows(0, 4), None]
    local = timed((quick, ended))
    local.run_for(2)
    assert closed(local) == [0, 10, 20]
    quick.append(None)
    local.run_until_drained()
    assert closed(local) == [0, 10, 20, 30]


def test_when_all_are_idle_time_stands_still_and_goes_on_with_the_next_tuple():
    only = rows(0, 35)
    local = timed((only,), idle=1)
    local.run_for(20)
    assert closed(local) == [0, 10, 20]
    only += rows(35, 41)
    local.run_for(1)
    assert closed(local) == [0, 10, 20, 30]


def test_a_sub_unit_of_a_bolt_that_owns_no_key_with_tuples_keeps_no_window_open():
    t = Topology("t")
    passed = t.spout("rows", Parts(rows(0, 35))).bolt("pass", Pass, grouping=by_key(), parallelism=4)
    passed.window("w", Gather, TumblingWindow(10), time=at).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(watch_values=False))
    local.run_for(0.9)
    assert closed(local) == []
    local.run_for(1)
    assert closed(local) == [0, 10, 20]


def test_time_goes_on_through_changes_of_every_unit():
    fed = rows(0, 12)
    local = timed((fed,))
    local.run_for(1)
    for turn in range(4):
        for unit, n in (("pass", 1 + turn % 3), ("w", 3 - turn % 3)):
            local.scale(unit, n)
            local.wait_for_change(unit)
        fed += rows(12 + 10 * turn, 22 + 10 * turn)
        local.run_for(1)
        assert closed(local) == [10 * i for i in range(turn + 2)], turn
    assert local.landed("late") == []


class Scheduled(Spout):
    """Gives a tuple each hour, and knows when the next one is due."""

    def __init__(self):
        self.began = None
        self.given = 0

    def read(self, limit):
        now = self.context.now()
        self.began = now if self.began is None else self.began
        if now < self.next_due():
            return []
        self.given += 1
        return rows(self.given, self.given + 1, "b")

    def next_due(self):
        return self.began + 3600 * self.given


def test_a_source_with_a_schedule_is_idle_until_its_next_tuple_is_due():
    t = Topology("t")
    often = t.spout("often", Parts(rows(0, 35)), time=at)
    seldom = t.spout("seldom", Scheduled(), time=at, idle=5)
    often.union(seldom).window("w", Gather, TumblingWindow(10), time=at).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(watch_values=False))
    local.run_for(4)
    assert closed(local) == []
    local.run_for(3)
    assert closed(local) == [0, 0, 10, 20]
