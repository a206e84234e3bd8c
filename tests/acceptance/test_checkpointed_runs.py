"""Runs with checkpoints on real processes: whoever is killed, every word is counted once, and every count lands once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path

import depth
import in_process
import pytest
from test_runs import landed

pytestmark = pytest.mark.slow
COUNTED = f"{Path(__file__).with_name('flows.py')}:counted"
LINES = 1600
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "it", "rains", "in", "paris"]


def write_text(folder, lines=LINES, name="in.txt"):
    with (folder / name).open("w") as file:
        for i in range(lines):
            file.write(" ".join(WORDS[(i * 7 + j * (1 + i % 5)) % len(WORDS)] for j in range(8)) + "\n")


def wanted(folder, name="in.txt"):
    return Counter((folder / name).read_text().split())


def check(path, want):
    """Each word's counts are 1, 2, 3 ... up to what there is, each once."""
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        found[row["key"]].append(row["value"])
    assert {word: len(values) for word, values in found.items()} == dict(want)
    for word, n in want.items():
        assert sorted(found[word]) == list(range(1, n + 1)), word


def checkpoint_of(command):
    return command.status().get("checkpoint", 0)


def gated(folder, rate=400.0):
    """Parameters of a run that does not end before there is a file `gate`, however long the machine takes for what a test asks."""
    return {"path": "in.txt", "out": "out.jsonl", "gate": folder / "gate", "rate": rate}


@pytest.mark.parametrize("victim", depth.chosen(["count", "split", "lines", "ack-server"], ["count", "ack-server"]))
def test_who_is_killed_brings_all_back_to_a_checkpoint_and_each_count_lands_once(command, tmp_path, victim):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "0.3", "--policy", "none", "--ackers", "1", p=2, **gated(tmp_path))
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    command.processes(victim)[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    (tmp_path / "gate").touch()
    code, out, err = command.wait()
    assert code == 0, err
    assert f"{victim.replace('-', ' ')}" in err
    assert "all go back to checkpoint" in err
    assert "all went back to checkpoint" in out
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert command.processes() == []


def test_a_chained_bolt_dies_with_the_unit_before_it_then_gets_its_own_processes_and_each_count_lands_once(
    command, tmp_path
):
    write_text(tmp_path)
    options = ("--checkpoint", "0.3", "--policy", "none")
    command.start("gated", *options, p=2, splits=1, **gated(tmp_path))
    command.running()
    assert command.processes("split") == []
    [split] = [unit for unit in command.status()["units"] if unit["name"] == "split"]
    assert split["chained_to"] == "lines"
    command.until(lambda: checkpoint_of(command) >= 1)
    command.processes("lines")[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    command.until(lambda: command.scaled("count", 3))
    command.until(lambda: command.scaled("split", 2))
    assert len(command.processes("split")) == 2
    [split] = [unit for unit in command.status()["units"] if unit["name"] == "split"]
    assert (split["chained_to"], split["sub_units"]) == ("", 2)
    command.processes("split")[0].kill()
    command.until(lambda: command.status().get("restores") == 2)
    (tmp_path / "gate").touch()
    code, out, err = command.wait()
    assert code == 0, err
    assert "split runs in processes of its own, and no longer in those of lines" in out + err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


@pytest.mark.parametrize("victim", depth.chosen(["command", "driver", "keeper"], ["driver"]))
def test_after_the_death_of_everything_resume_goes_on_with_another_parallelism(command, tmp_path, victim):
    write_text(tmp_path)
    more = gated(tmp_path)
    command.start("gated", "--checkpoint", "0.3", "--policy", "none", p=2, **more)
    command.running()
    command.until(lambda: checkpoint_of(command) >= 2)
    if victim == "command":
        command.process.kill()
        command.process.communicate()
    else:
        command.processes(victim)[0].kill()
        code, _, err = command.wait()
        assert code == 1, err
        assert "--resume" in err
    command.until(lambda: command.processes() == [])
    before = sorted(path.name for path in (tmp_path / ".esault" / command.name).iterdir())
    code, _, err = command.run("gated", "--checkpoint", "0.3", p=3, **more)
    assert code == 2
    assert "holds a run that did not finish (checkpoint" in err
    assert "--resume" in err
    assert "--restart" in err
    assert sorted(path.name for path in (tmp_path / ".esault" / command.name).iterdir()) == before
    (tmp_path / "gate").touch()
    code, out, err = command.run(
        "gated", "--checkpoint", "0.3", "--resume", "--policy", "none", "--parallelism", "count=3", p=2, **more
    )
    assert code == 0, err
    assert "drained" in out
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    code, _, err = command.run("gated", "--checkpoint", "0.3", "--resume", **more)
    assert code == 2
    assert "has ended: there is nothing to go on with" in err


def test_a_run_that_is_stopped_by_hand_pauses_and_resume_goes_on(command, tmp_path):
    write_text(tmp_path)
    more = gated(tmp_path)
    command.start("gated", "--checkpoint", "10", "--policy", "none", p=2, **more)
    command.running()
    command.until(lambda: next(u for u in command.status()["units"] if u["name"] == "count")["tuples_in"] > 5000)
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.wait()
    assert code == 0, err
    assert "paused" in out
    assert "--resume goes on" in out
    rows = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(rows) > 5000
    (tmp_path / "gate").touch()
    code, out, err = command.run("gated", "--checkpoint", "0.5", "--resume", "--policy", "none", p=2, **more)
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_two_runs_cannot_share_a_state_directory(command, other_command, tmp_path):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "1", "--state", "kept", **gated(tmp_path, 500.0))
    command.running()
    code, _, err = other_command.run(
        "counted", "--checkpoint", "1", "--state", "kept", path="in.txt", out="other.jsonl"
    )
    assert code == 2
    assert "another run uses the state directory kept" in err
    assert not (tmp_path / "other.jsonl").exists()
    assert command.stop()[0] == 0


def test_what_makes_no_sense_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path, 10)
    for said, told in [
        (("--resume",), "--resume is about checkpoints"),
        (("--state", "kept"), "--state is about checkpoints"),
        (("--checkpoint", "0"), "must be above 0"),
        (("--checkpoint", "1", "--acks", "off"), "with acks off there are no checkpoints"),
        (("--checkpoint", "1", "--resume", "--restart"), "say one of them"),
        (("--checkpoint", "1", "--state", "in.txt"), "the state directory in.txt cannot be used"),
    ]:
        params = ("--set=name=none", "--set=path=in.txt", "--set=out=out.jsonl")
        code, _, err = in_process.esault("run", COUNTED, "--plain", *params, *said)
        assert code == 2, said
        assert told in err
        assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("victim", depth.chosen(["count", "split"], ["count"]))
def test_a_source_that_cannot_seek_goes_on_in_its_process_and_is_read_once(command, tmp_path, victim):
    write_text(tmp_path, 2400)
    lines = (tmp_path / "in.txt").read_text().splitlines(keepends=True)
    command.start("counted_stdin", "--checkpoint", "0.3", "--policy", "none", stdin=subprocess.PIPE, out="out.jsonl")
    command.running()
    reader = command.processes("lines")[0].pid
    for i, line in enumerate(lines):
        command.process.stdin.write(line)
        if i % 100 == 0:
            command.process.stdin.flush()
            time.sleep(0.02)
        if i == 1200:
            command.until(lambda: checkpoint_of(command) >= 1)
            command.processes(victim)[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    assert command.processes("lines")[0].pid == reader
    code, _, err = command.wait()  # closes its standard input
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_a_frozen_process_holds_checkpoints_up_and_nothing_is_lost(command, tmp_path):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "0.3", "--policy", "none", p=2, **gated(tmp_path))
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    frozen = command.processes("count")[0].pid
    os.kill(frozen, signal.SIGSTOP)
    seen = checkpoint_of(command)
    time.sleep(1.5)
    held = checkpoint_of(command)
    os.kill(frozen, signal.SIGCONT)
    (tmp_path / "gate").touch()
    assert held <= seen + 1  # the one that was on may have had its part before
    code, out, err = command.wait()
    assert code == 0, err
    assert "all went back" not in out
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_a_rescale_between_checkpoints_and_a_death_after_it(command, tmp_path):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "0.3", "--policy", "none", p=2, **gated(tmp_path))
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    for restores, n in enumerate((4, 1, 3), 1):
        command.until(lambda n=n: command.scaled("count", n))
        command.processes("count")[0].kill()
        command.until(lambda restores=restores: command.status().get("restores") == restores)
        seen = checkpoint_of(command)
        command.until(lambda seen=seen: checkpoint_of(command) > seen)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_a_wish_that_comes_while_a_checkpoint_is_taken_waits_for_its_end(command, tmp_path):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "0.05", "--policy", "none", p=2, **gated(tmp_path))
    command.running()
    for n in (3, 1, 4, 2, 3, 1):
        command.scale("count", n)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_the_local_engine_keeps_checkpoints_too_and_either_engine_goes_on(command, tmp_path):
    write_text(tmp_path)
    more = gated(tmp_path)
    command.start("gated", "--engine", "local", "--checkpoint", "0.2", **more)
    kept = tmp_path / ".esault" / command.name
    command.until(lambda: len(list(kept.glob("checkpoint-*.json"))) == 2)
    command.process.kill()
    command.process.communicate()
    (tmp_path / "gate").touch()
    code, _, err = command.run("gated", "--checkpoint", "0.2", "--resume", "--policy", "none", **more)
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


@pytest.mark.parametrize("stop", depth.chosen(["drained", "killed"], ["killed"]))
def test_a_table_has_each_row_once(command, tmp_path, stop):
    pytest.importorskip("pyarrow")
    write_text(tmp_path)
    more = {"path": "in.txt", "out": "table", "rate": 800.0, "p": 2, "go": tmp_path / "go"}
    command.start("words", "--checkpoint", "0.3", "--policy", "none", **more)
    command.running()
    command.until(lambda: checkpoint_of(command) >= 2)
    command.processes("count")[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    (tmp_path / "go").touch()
    if stop == "killed":
        command.process.kill()
        command.process.communicate()
        code, _, err = command.run("words", "--checkpoint", "0.3", "--policy", "none", "--resume", **more)
    else:
        code, _, err = command.wait()
    assert code == 0, err
    found = defaultdict(list)
    for row in landed(tmp_path / "table"):
        found[row["word"]].append(row["total"])
    want = wanted(tmp_path)
    assert {word: sorted(totals) for word, totals in found.items()} == {
        w: list(range(1, n + 1)) for w, n in want.items()
    }
