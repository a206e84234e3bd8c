"""All sources are silent: with `Idle(seconds, advance=True)` time goes on with the clock, without it it stands still."""

from __future__ import annotations

import pytest
from numbered import Numbered, Shelf
from test_change_machine import Fed
from test_idle_time import Parts, closed, rows, timed
from windowed import Gather, Pass, at

from esault import Bolt, Topology, TopologyError, by_key, shuffle
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Directory
from esault.state.manifest import decode, encode
from esault.testing import LocalRuntime
from esault.windows import Idle, SessionWindow, TumblingWindow

ADVANCE = Idle(5, advance=True)


def test_windows_close_by_the_clock_while_nothing_comes():
    local = timed((rows(0, 35),), idle=ADVANCE)
    local.run_for(4)
    assert closed(local) == [0, 10, 20]
    local.run_for(0.8)
    assert closed(local) == [0, 10, 20]  # the newest time is 34, and 4.8 s have passed
    local.run_for(1.6)
    assert closed(local) == [0, 10, 20, 30]
    assert local.landed("late") == []


def test_lateness_is_kept_in_silence_too():
    local = timed((rows(0, 35),), idle=ADVANCE, lateness=20)
    local.run_for(24)
    assert closed(local) == [0, 10, 20]  # 34 - 20 + 24 = 38
    local.run_for(3)
    assert closed(local) == [0, 10, 20, 30]


@pytest.mark.parametrize("idle", [5, Idle(5)])
def test_it_is_off_unless_asked_for(idle):
    local = timed((rows(0, 35),), idle=idle)
    local.run_for(20)
    assert closed(local) == [0, 10, 20]


def test_what_comes_behind_the_clock_is_late_and_counted():
    only = rows(0, 35)
    local = timed((only,), idle=ADVANCE)
    local.run_for(30)
    assert closed(local) == [0, 10, 20, 30]
    only += [*rows(36, 37), *rows(70, 82)]
    local.run_for(1)
    assert closed(local) == [0, 10, 20, 30, 70]
    assert [row.value["n"] for row in local.landed("late")] == [36]
    assert local.report().units["w"].late == 1
    local.run_for(10)
    assert closed(local) == [0, 10, 20, 30, 70, 80]
    assert sorted(n for row in local.landed("out") for n in row.value["rows"]) == [*range(35), *range(70, 82)]


def test_one_source_that_gives_tuples_is_no_silence():
    quick, slow = rows(0, 35), rows(0, 12)
    local = timed((quick, slow), idle=ADVANCE)
    local.run_for(4)
    for n in range(35, 41):
        quick += rows(n, n + 1)
        local.run_for(2)
    # the slow one is left out, and the quick one's own times count: 40, not 34 + 12
    assert closed(local) == [0, 10, 20, 30]
    local.run_for(4)
    assert closed(local) == [0, 10, 20, 30]


def test_a_source_that_never_gave_a_tuple_has_no_time_that_could_go_on():
    local = timed(([],), idle=ADVANCE)
    local.run_for(10)
    assert closed(local) == []
    local = timed((rows(0, 35), []), idle=ADVANCE)
    local.run_for(10)
    assert closed(local) == [0, 10, 20, 30]


def test_sessions_and_timers_come_due():
    class Wait(Bolt):
        def process(self, key, value):
            self.timer("alert", value["at"] + 30)

        def on_timer(self, name, at):
            self.emit(self.key, at)

    t = Topology("t")
    read = t.spout("rows", Parts(rows(0, 5)), time=at, idle=ADVANCE)
    read.bolt("wait", Wait, grouping=by_key())
    read.window("w", Gather, SessionWindow(20)).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(watch_values=False))
    local.run_for(20)
    assert closed(local) == []
    local.run_for(2)
    assert closed(local) == [0]
    assert local.emitted("wait") == []
    local.run_for(10)
    assert local.emitted("wait") == [("a", 34)]


def test_time_goes_on_in_silence_through_changes_of_every_unit():
    local = timed((rows(0, 12),), idle=ADVANCE)
    for turn in range(4):
        for unit, n in (("pass", 1 + turn % 3), ("w", 3 - turn % 3)):
            local.scale(unit, n)
            local.wait_for_change(unit)
        local.run_for(10)
    assert closed(local) == [0, 10]
    assert local.landed("late") == []


def fed(feed, idle=ADVANCE):
    t = Topology("t")
    spout = t.spout("rows", Fed(feed), time=at, idle=idle)
    out = spout.bolt("pass", Pass, grouping=shuffle(), parallelism=2).window("w", Gather, TumblingWindow(10), time=at)
    out.sink("out", Collect())
    out["late"].sink("late", Collect())
    return t


def resumed(local, topology, **options):
    kept = local.kept[-1]
    again = LocalRuntime(topology, settings=Settings(delivery="eo"), kept=kept, last_number=kept.number, **options)
    again.state_store.pieces.update(local.state_store.pieces)
    return again


@pytest.mark.parametrize("parallelism", [{}, {"w": 3, "pass": 1}])
def test_a_run_that_is_resumed_in_silence_closes_its_windows_once(parallelism):
    feed = {"rows": rows(0, 35), "ended": False}
    local = LocalRuntime(fed(feed), settings=Settings(delivery="eo"))
    local.run_for(1)
    local.checkpoint()
    local.run_for(1)
    before = closed(local)
    assert before == [0, 10, 20]
    again = resumed(local, fed(feed), parallelism=parallelism)
    again.run_for(4.5)
    again.checkpoint()
    again.run_for(0.4)
    assert closed(again) == []
    again.run_for(8)
    again.checkpoint()
    again.run_for(1)
    assert closed(again) == [30]  # the source has given nothing since
    feed["rows"] += [*rows(20, 21), *rows(38, 39), *rows(60, 61)]
    feed["ended"] = True
    again.run_until_drained()
    assert closed(again) == [30, 60]
    assert sorted(row.value["n"] for row in again.landed("late")) == [20, 38]


def test_splits_are_silent_as_sources_are_also_behind_a_resume():
    def numbers(shelf):
        t = Topology("t")
        read = t.spout("rows", Numbered(shelf, every=100.0), time=float, idle=ADVANCE, parallelism=2)
        read.map(lambda n: {"at": n, "n": n}).window("w", Gather, TumblingWindow(10), time=at).sink("out", Collect())
        return t

    shelf = Shelf({"a": 35, "b": 12})
    local = LocalRuntime(numbers(shelf), settings=Settings(delivery="eo"))
    shelf.alive = local.lives
    local.run_for(1)
    local.checkpoint()
    local.run_for(1)
    assert closed(local) == [0, 0]  # b is waited for
    shelf.readers.clear()
    again = resumed(local, numbers(shelf))
    again.run_for(12)
    again.checkpoint()
    again.run_for(1)
    assert closed(again) == [10, 10, 20, 30]
    shelf.sizes["a"] = 50
    again.run_for(1)
    again.checkpoint()
    again.run_for(1)
    found = [n for each in (local, again) for row in each.landed("out") for n in row.value["rows"]]
    assert sorted(found) == sorted([*range(35), *range(12)])


def test_time_goes_on_behind_splits_that_were_read_to_their_end(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(35)))
    t = Topology("t")
    lines = t.spout("rows", Directory(str(tmp_path)), time=float, idle=ADVANCE, parallelism=2)
    numbers = lines.map(lambda line: {"at": int(line), "n": int(line)}).key_by(lambda value: "all")
    out = numbers.window("w", Gather, TumblingWindow(10), time=at)
    out.sink("out", Collect())
    out["late"].sink("late", Collect())
    local = LocalRuntime(t, settings=Settings(watch_values=False))
    local.run_for(4)
    assert 30 not in closed(local)  # the file has ended, and another may come
    local.run_for(8)
    assert closed(local) == [0, 10, 20, 30]
    (tmp_path / "b.txt").write_text("".join(f"{n}\n" for n in [39, *range(50, 65)]))
    local.run_for(25)
    assert closed(local) == [0, 10, 20, 30, 50, 60]
    assert [row.value["n"] for row in local.landed("late")] == [39]


def test_a_run_is_resumed_in_silence_also_where_all_files_had_been_read(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(35)))

    def files():
        t = Topology("t")
        lines = t.spout("rows", Directory(str(tmp_path)), time=float, idle=ADVANCE, parallelism=2)
        numbers = lines.map(lambda line: {"at": int(line), "n": int(line)}).key_by(lambda value: "all")
        numbers.window("w", Gather, TumblingWindow(10), time=at).sink("out", Collect())
        return t

    local = LocalRuntime(files(), settings=Settings(delivery="eo"))
    local.run_for(2)
    local.checkpoint()
    local.run_for(1)
    before = closed(local)
    assert 30 not in before
    assert decode(encode(local.kept[-1]), tmp_path) == local.kept[-1]
    again = resumed(local, files())
    again.run_for(12)
    again.checkpoint()
    again.run_for(1)
    assert sorted([*before, *closed(again)]) == [0, 10, 20, 30]


def test_windows_that_the_clock_has_closed_stay_closed_behind_a_checkpoint():
    feed = {"rows": rows(0, 35), "ended": False}
    local = LocalRuntime(fed(feed), settings=Settings(delivery="eo"))
    local.run_for(30)
    assert closed(local) == []  # sinks commit with checkpoints
    local.checkpoint()
    local.run_for(1)
    assert closed(local) == [0, 10, 20, 30]
    again = resumed(local, fed(feed))
    feed["rows"] += [*rows(36, 37), *rows(90, 91)]
    feed["ended"] = True
    again.run_until_drained()
    assert closed(again) == [90]
    assert [row.value["n"] for row in again.landed("late")] == [36]


def test_what_dies_in_silence_closes_each_window_once():
    feed = {"rows": rows(0, 35), "ended": False}
    local = LocalRuntime(fed(feed), settings=Settings(delivery="eo"))
    local.run_for(1)
    local.checkpoint()
    local.run_for(2)
    for unit in ("rows", "pass", "w"):
        local.kill(local.sub_units(unit)[0])
        local.run_for(8)
    local.checkpoint()
    local.run_for(10)
    feed["ended"] = True
    local.run_until_drained()
    assert closed(local) == [0, 10, 20, 30]
    assert sorted(n for row in local.landed("out") for n in row.value["rows"]) == [*range(35)]
    assert local.landed("late") == []


@pytest.mark.parametrize("wrong", [Idle(0, advance=True), Idle("5"), "5"])
def test_seconds_that_are_none_are_refused(wrong):
    with pytest.raises(TopologyError, match="idle"):
        Topology("t").spout("rows", Parts([]), time=at, idle=wrong)
