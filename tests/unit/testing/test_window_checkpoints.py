"""Windows, what waits in them and how far time had come survive whatever dies, with checkpoints; without them nothing crashes."""

from __future__ import annotations

import random
from typing import Any

import depth
import pytest
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_change_machine import Fed
from test_checkpoints import walk
from windowed import LATENESS, again_of, chain, gathered, sessions_of, windows_of

from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, SlidingWindow, TumblingWindow

AGAIN = TumblingWindow(50)


def rows_of(seed, count=600):
    order, newest, rows = random.Random(seed), 0, []
    for n in range(count):
        newest += order.randint(0, 3)
        rows.append((order.choice("abcdefgh"), {"at": newest - order.randint(0, LATENESS), "n": n}))
    return rows


def run(seed, window, apart, delivery):
    rows = rows_of(seed)
    options = Settings(delivery=delivery, max_pending=4, root_rows=16, frame_rows=8)
    topology = chain(Nothing(), window, AGAIN, parallelism=1, apart=apart)
    local = LocalRuntime(topology, spouts={"rows": rows}, seed=seed, settings=options)
    return rows, local, random.Random(seed)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 1 << 30),
    st.sampled_from([TumblingWindow(10), SlidingWindow(15, 6), SessionWindow(4)]),
    st.booleans(),
    st.integers(0, 4),
)
@example(seed=695280, window=TumblingWindow(10), apart=False, kills=2)
@example(seed=1073741824, window=TumblingWindow(10), apart=True, kills=4)
def test_whoever_dies_windows_are_as_if_each_tuple_had_been_processed_once(done, seed, window, apart, kills):
    rows, local, order = run(seed, window, apart, "eo")
    walk(local, order, "window", kills=kills)
    done.of(local, "change", "checkpoint", "death")
    expected = sessions_of(4, rows) if isinstance(window, SessionWindow) else windows_of(window, rows)
    assert local.landed("late") == local.landed("more-late") == []
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
    assert sorted((row.key, row.value) for row in local.landed("more")) == again_of(AGAIN, expected)


@pytest.mark.parametrize("seed", depth.chosen(range(6), range(2)))
def test_without_checkpoints_a_death_costs_what_was_in_windows_and_no_more(seed):
    rows, local, order = run(seed, TumblingWindow(10), True, "alo")
    for emitted in (5, 60):
        while len(local.emitted("window")) < emitted:
            local.step() or local.wait()
        local.kill(order.choice([i for i in local.sub_units("window") if local.lives(i)]))
    local.run_until_drained()
    report = local.report()
    assert report.deaths == 2
    assert report.roots.open == 0
    # What is in a window belongs there, also if it was replayed.
    expected = windows_of(TumblingWindow(10), rows)
    found = {}
    for row in local.landed("table"):
        window = (row.key, row.value["start"], row.value["at"])
        found.setdefault(window, set()).update(row.value["rows"])
    assert all(numbers <= set(expected[window]) for window, numbers in found.items())


def test_what_had_closed_before_a_checkpoint_is_late_after_it_on_any_number_of_sub_units():
    feed = {"rows": [("ab"[i % 2], {"at": i, "n": i}) for i in range(60)], "ended": False}
    options = Settings(delivery="eo", root_rows=10, max_pending=1)
    local = LocalRuntime(chain(Fed(feed), TumblingWindow(10), AGAIN, parallelism=1), settings=options)
    local.run_for(1.0)
    local.checkpoint()
    local.run_for(1.0)
    kept = local.kept[-1]
    closed = gathered([(row.key, row.value) for row in local.landed("table")])
    assert len(closed) == 10
    feed["rows"] += [("a", {"at": 3, "n": 99}), ("b", {"at": 60, "n": 100})]
    feed["ended"] = True
    again = LocalRuntime(
        chain(Fed(feed), TumblingWindow(10), AGAIN, parallelism=1),
        settings=options,
        parallelism={"window": 4},
        kept=kept,
        last_number=kept.number,
    )
    again.state_store.pieces.update(local.state_store.pieces)
    again.run_until_drained()
    opened = gathered([(row.key, row.value) for row in again.landed("table")])
    assert not set(opened) & set(closed)
    assert sorted(n for numbers in (*closed.values(), *opened.values()) for n in numbers) == [*range(60), 100]
    assert [row.value["n"] for row in again.landed("late")] == [99]


@pytest.mark.parametrize("what", ["move", "split", "merge", "scale"])
def test_what_had_closed_before_keys_moved_is_late_also_behind_a_death_right_after(what, monkeypatch):
    """Which owner had come how far is kept for each range: a newcomer has heard of no watermark yet. A random stream found it."""
    keys = "abcdefgh"
    feed: dict[str, Any] = {"rows": [(keys[i % 8], {"at": i // 8, "n": i}) for i in range(8 * 30)], "ended": False}
    options = Settings(delivery="eo", root_rows=10, max_pending=4)
    local = LocalRuntime(chain(Fed(feed), TumblingWindow(10), AGAIN, parallelism=1), settings=options)
    local.run_for(1.0)
    monkeypatch.setattr("esault.flow.worker.watermark_sender.TELL_EVERY", 1e9)  # newcomers hear of none before the cut
    feed["rows"] += [(key, {"at": 30, "n": 240 + i}) for i, key in enumerate(keys)]
    local.run_for(0.1)
    if what == "scale":
        local.scale("window", 4)
    else:
        getattr(local, what)("window", local.sub_units("window")[0])
    local.wait_for_change("window")
    number = local.checkpoint()
    while not local.kept or local.kept[-1].number < number or len(local.landed("table")) < 2 * len(keys):
        local.step() or local.wait()
    monkeypatch.undo()
    local.kill(local.sub_units("window")[0])
    feed["rows"] += [(key, {"at": 15, "n": 1000 + i}) for i, key in enumerate(keys)]
    feed["rows"] += [(key, {"at": 29, "n": 2000 + i}) for i, key in enumerate(keys)]
    feed["ended"] = True
    local.run_until_drained()
    found = gathered([(row.key, row.value) for row in local.landed("table")])
    assert found == windows_of(TumblingWindow(10), [row for row in feed["rows"] if not 1000 <= row[1]["n"] < 2000])
    assert sorted(row.value["n"] for row in local.landed("late")) == list(range(1000, 1008))


def test_where_the_watermark_stood_is_of_the_moment_of_the_cut(monkeypatch):
    monkeypatch.setattr("esault.flow.checkpoint.state_writer.SNAPSHOT_TURN", 0.0)  # a key a turn: rows flow meanwhile
    monkeypatch.setattr("esault.flow.checkpoint.snapshot.SLICE", 1)
    keys = [f"k{i}" for i in range(400)]
    # All keys are in the first checkpoint; a third of them has changed at the second, and time goes on at once behind it.
    rows = [(key, {"at": 0, "n": n}) for n, key in enumerate(keys)]
    rows += [(keys[n % 130], {"at": 5 + n // 4, "n": 400 + n}) for n in range(1200)]
    feed = {"rows": rows[:400], "ended": False}
    options = Settings(delivery="eo", root_rows=8, max_pending=64)
    local = LocalRuntime(chain(Fed(feed), TumblingWindow(10), AGAIN, parallelism=1), settings=options)
    local.run_for(1.0)
    local.checkpoint()
    local.run_for(1.0)
    feed["rows"] = rows[:600]
    local.run_for(1.0)
    local.checkpoint()
    feed["rows"], feed["ended"] = rows, True
    while len(local.kept) < 2:
        local.clock.advance(0.002)
        local.step() or local.wait()
    local.kill(local.sub_units("window")[0])
    local.run_until_drained()
    assert [row.value["n"] for row in local.landed("late")] == []
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == windows_of(TumblingWindow(10), rows)


def test_rows_of_a_source_that_has_grown_behind_its_end_are_late_and_told(caplog):
    """Another source keeps the run alive, so that there is a checkpoint behind the end of this one."""
    rows = [("ab"[i % 2], {"at": i, "n": i}) for i in range(60)]
    feed, other = {"rows": rows[:40], "ended": True}, {"rows": [("k", 1)], "ended": False}

    def topology():
        t = chain(Fed(feed), TumblingWindow(10), AGAIN, parallelism=1)
        t.spout("other", Fed(other)).sink("rest", Landed())
        return t

    local = LocalRuntime(topology(), settings=Settings(delivery="eo"))
    local.run_for(1.0)
    local.checkpoint()
    local.run_for(1.0)
    assert not caplog.records
    feed["rows"], other["ended"] = rows, True
    kept = local.kept[-1]
    again = LocalRuntime(topology(), settings=Settings(delivery="eo"), kept=kept, last_number=kept.number)
    again.state_store.pieces.update(local.state_store.pieces)
    again.run_until_drained()
    closed = gathered([(row.key, row.value) for row in local.landed("table")])
    assert closed == windows_of(TumblingWindow(10), rows[:40]) and not again.landed("table")
    assert sorted(row.value["n"] for row in again.landed("late")) == [*range(40, 60)]
    assert again.report().units["window"].late == 20
    assert [r.message for r in caplog.records if "had ended before the checkpoint" in r.message]
