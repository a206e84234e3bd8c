"""What a LocalRuntime says of itself, and how it refuses what cannot be."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from commands_asked import some_change
from counting import Count, Landed, Nothing

from esault import Bolt, EndOfStream, Spout, Topology, TopologyError, TopologyFailed, UsageError, by_key
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import CsvFiles, Items, Table
from esault.testing import LocalRuntime, Sent
from esault.windows import TumblingWindow


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def echoing(spout=None, sink=None):
    t = Topology("echoing")
    t.spout("rows", spout or Nothing()).bolt("echo", Echo, by_key(), parallelism=2).sink("out", sink or Landed())
    return t


ROWS = [("a", 1), ("b", 2)]


def test_it_takes_a_topology_a_plan_or_what_makes_one():
    for topology in (echoing(), echoing().plan(), lambda: echoing().plan()):
        local = LocalRuntime(topology, spouts={"rows": ROWS})
        local.run_until_drained()
        assert sorted(local.emitted("echo")) == ROWS


@pytest.mark.parametrize("settings", [None, Settings(delivery="eo", checkpoint_every=0.01)])
def test_another_source_may_stand_in_place_of_a_spout_also_one_of_splits(settings, tmp_path):
    frame = pa.table({"word": [key for key, _ in ROWS], "n": [n for _, n in ROWS]})
    (tmp_path / "rows.csv").write_text("word,n\na,1\nb,2\n")
    csv = CsvFiles(str(tmp_path), key="word", types={"n": int})
    for source in (Table(frame, key="word"), csv, Items(ROWS)):
        local = LocalRuntime(echoing(), spouts={"rows": source}, settings=settings)
        local.run_until_drained()
        found = sorted((key, value if isinstance(value, int) else value["n"]) for key, value in local.emitted("echo"))
        assert found == ROWS


class Alone(Spout):
    """Reads its rows in one sub-unit."""

    def __init__(self):
        self.rows = list(ROWS)

    def read(self, limit):
        if not self.rows:
            raise EndOfStream
        return [self.rows.pop(0)]


@pytest.mark.parametrize("source", [ROWS, Alone(), Items(ROWS)], ids=["rows", "alone", "parallel"])
@pytest.mark.parametrize("parallelism", [None, {"rows": 3}])
def test_each_tuple_in_place_of_a_spout_is_read_once_however_many_read(source, parallelism):
    t = Topology("echoing")
    t.spout("rows", Items([]), parallelism=2).bolt("echo", Echo, by_key()).sink("out", Landed())
    local = LocalRuntime(t, spouts={"rows": source}, parallelism=parallelism)
    local.run_until_drained()
    assert sorted(local.emitted("echo")) == ROWS


def test_tuples_in_place_of_a_spout_come_in_their_order_and_close_windows_however_many_read():
    t = Topology("windows")
    rows = t.spout("rows", Items([]), parallelism=2, time=lambda value: value)
    rows.window("w", Last, TumblingWindow(10)).sink("out", Landed())
    local = LocalRuntime(t, spouts={"rows": Sent()})
    local.send("rows", ("a", 1), ("a", 5), ("a", 3))
    local.send("rows", ("a", 12))
    assert local.emitted("w") == [("a", 3)]


class Last(Bolt):
    def __init__(self):
        self.last = None

    def process(self, key, value):
        self.last = value

    def finish(self):
        self.emit(self.key, self.last)


@pytest.mark.parametrize("wrong", [5, ("a", 1, 2), "ab", {"a": 1, "b": 2}])
def test_what_is_no_tuple_is_refused_by_name(wrong):
    with pytest.raises(
        TopologyError, match=r"spouts=\{'rows': ...\}: .* is among its tuples; write each as \(key, value\)"
    ):
        LocalRuntime(echoing(), spouts={"rows": [("a", 1), wrong]})


def test_names_that_are_not_there_are_refused_with_those_that_are():
    with pytest.raises(TopologyError, match="there is no spout of that name; there are: rows"):
        LocalRuntime(echoing(), spouts={"row": ROWS})
    local = LocalRuntime(echoing(), spouts={"rows": ROWS})
    with pytest.raises(UsageError, match="no sink 'in'; there are: out"):
        local.landed("in")
    with pytest.raises(UsageError, match="eco"):
        local.sub_units("eco")
    with pytest.raises(UsageError, match="there is no process 999; there are: "):
        local.kill(999)


def test_after_the_end_a_change_is_one_of_the_table_alone():
    local = LocalRuntime(echoing(), spouts={"rows": ROWS})
    local.run_until_drained()
    first, second = local.sub_units("echo")
    local.split("echo", first)
    assert len(local.sub_units("echo")) == 3
    local.merge("echo", first)
    local.move("echo", second)
    assert len(local.sub_units("echo")) == 2 and second not in local.sub_units("echo")
    with pytest.raises(UsageError, match=f"unit 'echo' has no sub-unit {second}"):
        local.split("echo", second)
    with pytest.raises(UsageError, match="unit 'echo': "):
        local.split("echo", local.sub_units("echo")[0], at=-1)


def test_a_run_that_takes_longer_than_it_may_fails_and_says_so():
    local = LocalRuntime(echoing(), spouts={"rows": ROWS})
    with pytest.raises(TopologyFailed, match="echoing: not drained after 0 s"):
        local.run_until_drained(0)
    local = LocalRuntime(echoing(), spouts={"rows": [ROWS[0]] * 5000})
    local.run_until(lambda: local.emitted("echo"))
    for sub_unit in local.sub_units("echo"):
        local.freeze(sub_unit)
    local.split("echo", local.sub_units("echo")[0])
    with pytest.raises(TopologyFailed, match="echo: the change did not end within 0.5 s"):
        local.wait_for_change("echo", 0.5)


def test_bytes_of_a_stranger_and_a_lost_frame_stop_nothing():
    local = LocalRuntime(echoing(), spouts={"rows": [("k", i) for i in range(500)]})
    local.run_until(lambda: local.emitted("echo"))
    for sub_unit in local.sub_units("echo"):
        local.garble(sub_unit, b"\xc1nonsense")
        local.garble(sub_unit, b"\xc1nonsense", express=True)
        local.lose_frame(sub_unit)
    local.run_until_drained()
    assert {value for _, value in local.emitted("echo")} == set(range(500))


def test_with_what_is_real_sinks_of_the_program_have_the_rows():
    local = LocalRuntime(echoing(Items(ROWS), Collect()), real=True)
    local.run_until_drained()
    assert sorted(map(tuple, local.collected()["out"])) == ROWS


@pytest.mark.parametrize("seed", range(4))
def test_of_a_key_that_moved_the_newest_row_lands_last(seed):
    t = Topology("totals")
    rows = t.spout("rows", Items([(f"k{n % 7}", 1) for n in range(700)]))
    rows.bolt("count", Count, by_key()).sink("totals", Landed())
    options = Settings(max_pending=8, root_rows=16, frame_rows=4)
    local, order = LocalRuntime(t, seed=seed, settings=options), random.Random(seed)
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.1:
            some_change(local, order, ["count"], most=4)
        local.step() or local.wait()
    assert {row.key: row.value for row in local.landed("totals")} == {f"k{n}": 100 for n in range(7)}
