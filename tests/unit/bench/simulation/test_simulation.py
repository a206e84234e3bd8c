"""Deterministic simulation of the whole: some seeds, and that a seed says all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import depth
import pytest

from bench.simulation.__main__ import attempt, simulate
from bench.simulation.disk import Disk
from bench.simulation.events import Events
from bench.simulation.network import Channel, Network
from bench.simulation.outside import Broken, Outside
from bench.simulation.scenario import draw
from bench.simulation.simulation import Simulation
from bench.simulation.tally import Tally
from esault.payload.codec import Codec
from esault.state import files
from esault.state.piece_file import PieceWriter

ROOT = Path(__file__).parents[4]


@pytest.mark.slow
def test_whatever_befalls_a_run_each_guarantee_holds():
    first = random.randrange(10**9) if depth.PROFILE in ("developer", "deep") else 1
    wrong = [attempt(seed, 40.0)[::2] for seed in range(first, first + depth.of(12))]
    failed = [f"python -m bench.simulation --only {seed} --seconds 40: {why}" for seed, why in wrong if why]
    assert not failed, "\n".join(failed)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history_byte_for_byte_in_another_process():
    simulation, wrong = simulate(142, 40.0)
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-m", "bench.simulation", "--only", "142", "--seconds", "40"]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True, text=True).stdout
    assert not wrong and str(simulation.history) in told
    assert f"trace {simulation.events.trace:08x}" in told and told.count("fault: ") > 3


@pytest.mark.slow
def test_a_row_that_is_missing_or_doubled_is_found(monkeypatch):
    """A simulation that finds nothing proves nothing: with a table that loses or doubles a row each seed fails."""
    commit = Outside.table

    def table(outside, name, kind):
        made: Any = commit(outside, name, kind)
        if not hasattr(made, "spoiled"):
            made.spoiled, keep = True, made.prepare
            made.prepare = lambda rows: keep(rows[1:] if spoil < 0 else rows + rows[:1])
        return made

    for spoil in (-1, 1):
        monkeypatch.setattr(Outside, "table", table)
        _, wrong = simulate(1, 40.0)
        assert "missing" in wrong and ("0 missing" in wrong) == (spoil > 0)


def network():
    events = Events()
    return events, Network(events, random.Random(1))


def test_a_channel_keeps_its_order_and_waits_where_its_way_is_cut():
    events, made = network()
    channel, got = Channel(made, "a", "b", "way"), []
    for i in range(20):
        channel.put(got.append, i)
    made.cut("a", "b")
    while events.step():
        pass
    assert got == []
    made.heal("a", "b")
    while events.step():
        pass
    assert got == list(range(20))


def test_what_is_under_way_is_lost_where_a_connection_ends():
    events, made = network()
    channel, got = Channel(made, "a", "a", "way"), []
    channel.put(got.append, 1)
    channel.close()
    channel.put(got.append, 2)
    while events.step():
        pass
    assert got == []


def test_a_table_shows_rows_once_and_tells_of_rows_that_were_given_up():
    outside = Outside(Events(), None)
    table = outside.table("t", "staged")
    first, second = table.prepare([1, 2]), table.prepare([3])
    for _ in range(2):
        table.commit(first)
    assert table.rows == [1, 2]
    table.forget([])
    with pytest.raises(Broken):
        table.commit(second)


def test_a_power_cut_leaves_what_was_made_durable_and_no_name_that_was_not(tmp_path):
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        disk = Disk(folder, Events(), seed)
        with disk.installed():
            files.write_whole(folder / "kept", b"all of it")
            piece = PieceWriter(folder / "half", True, Codec())
            piece.add("a", bytes(500_000))
        disk.cut_power(random.Random(seed))
        piece.drop()
        assert (folder / "kept").read_bytes() == b"all of it"
        assert not (folder / "half").exists()


def test_a_disk_that_is_full_refuses_and_leaves_what_is_there(tmp_path):
    events = Events()
    disk = Disk(tmp_path, events, 1)
    with disk.installed():
        files.write_whole(tmp_path / "kept", b"1")
        disk.full_until = 1.0
        with pytest.raises(OSError, match="No space"):
            files.write_whole(tmp_path / "kept", b"2")
    assert (tmp_path / "kept").read_bytes() == b"1"


def test_what_an_fsync_that_failed_was_asked_for_is_gone_with_the_power_though_the_next_one_said_yes(tmp_path):
    """As on Linux: pages that could not be written count as written."""
    refused = 0
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        events = Events()
        disk = Disk(folder, events, seed)
        with disk.installed():
            (folder / "a").write_bytes(b"all of it")
            disk.failing_until = 1.0
            with pytest.raises(OSError, match="Input/output"):
                while True:
                    files.sync_file(folder / "a")
            disk.failing_until = 0.0
            files.sync_file(folder / "a")
            files.sync_folder(folder)
        disk.cut_power(random.Random(seed))
        refused += (folder / "a").read_bytes() != b"all of it"
    assert refused > 4  # where the first one did not fail, all is there


def test_a_disk_that_lies_says_yes_and_keeps_nothing(tmp_path):
    gone = 0
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        disk = Disk(folder, Events(), seed)
        with disk.installed():
            disk.lying_until = 1.0
            files.write_whole(folder / "kept", b"all of it")
        assert disk.lies == 2
        disk.cut_power(random.Random(seed))
        gone += not (folder / "kept").exists() or (folder / "kept").read_bytes() != b"all of it"
    assert gone > 10


@pytest.mark.slow
def test_after_a_disk_that_lies_no_row_is_missing_or_the_run_says_that_nothing_is_left():
    scenario = replace(draw(9047, 60.0), disk_lies=True, fault_every=3.0)
    assert scenario.settings.delivery == "eo"
    simulation = Simulation(scenario)
    counts = simulation.run()
    assert counts["fault: disk that lies"] and simulation.lied_to


@pytest.mark.slow
def test_an_answer_of_another_time_is_found(monkeypatch):
    """The count of a row before is no answer, unless it was one between question and answer."""
    monkeypatch.setattr(Tally, "__getstate__", lambda tally: {"n": tally.n - 1}, raising=False)
    _, wrong = simulate(142, 40.0)
    assert wrong
