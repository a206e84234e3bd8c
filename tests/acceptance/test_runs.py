"""Whole runs on real processes, from the command line, with what can go wrong."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import depth
import pytest

from esault.runtime.net.links import HEADER, PREFACE

pytestmark = pytest.mark.slow


def write_lines(folder, n, seed=1):
    order = random.Random(seed)
    lines = [" ".join(order.choices("abcdefghijklmnop", k=8)) for _ in range(n)]
    (folder / "in.txt").write_text("\n".join(lines) + "\n")
    return lines


def landed(folder):
    import pyarrow.parquet as pq

    from esault.sinks.landing import parts

    if not (folder / "_esault_log").exists() or not list((folder / "_esault_log").glob("*.json")):
        return []
    rows = []
    for part in parts(folder):
        rows += pq.read_table(part).to_pylist()
    return rows


def distinct(folder):
    """Whether readers need not look for rows that came twice."""
    from esault.sinks.landing import table_log

    return table_log(folder).at().distinct


def run_dirs(command):
    """Folders of this command's run, also where it is gone."""
    return list(Path(os.environ["XDG_RUNTIME_DIR"]).glob(f"esault-{command.process.pid}-*"))


def test_counts_are_exact_and_the_report_says_so(command, tmp_path):
    lines = write_lines(tmp_path, 2000)
    code, out, err = command.run("words", "--report", "r.json", path="in.txt", out="table", p=2)
    assert code == 0, err
    totals = Counter()
    rows = landed(tmp_path / "table")
    for row in rows:
        totals[row["word"]] = max(totals[row["word"]], row["total"])
    want = Counter(word for line in lines for word in line.split())
    assert totals == want
    assert len({row["_id"] for row in rows}) == want.total() == len(rows)
    assert distinct(tmp_path / "table")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["schema"] == 1
    assert report["ended"] == "drained"
    assert report["engine"] == "actors"
    assert report["units"]["count"]["tuples_in"] == want.total()
    assert report["units"]["count"]["parallelism"] == [[0.0, 2]]
    assert report["roots"]["emitted"] == report["roots"]["acked"] > 0
    assert report["roots"]["replayed"] == report["roots"]["open"] == 0
    assert set(report["end_to_end_ms"]) == {"p50", "p99", "max"}
    assert "drained" in out
    assert not command.processes()
    assert not run_dirs(command)


@pytest.mark.parametrize("unit", depth.chosen(["count", "split", "lines"], ["count", "lines"]))
def test_a_killed_process_is_replaced_and_nothing_is_missing(command, tmp_path, unit):
    lines = write_lines(tmp_path, 2400)
    options = ("--report", "r.json", "--no-chaining")
    command.start("words", *options, path="in.txt", out="table", rate=600, go=tmp_path / "go")
    victims = command.until(lambda: command.processes(f"{unit}/"))
    # Some way in, so that the last report of what it holds has come.
    command.until(lambda: len(landed(tmp_path / "table")) > 4_800)
    (tmp_path / "go").touch()  # so much is still to come, however long the look took
    victims[0].kill()
    code, _, err = command.wait()
    assert code == 0, err
    assert "died (killed by SIGKILL" in err
    ids = {row["_id"].split(":")[1] for row in landed(tmp_path / "table")}
    if unit == "lines":  # its successor numbers rows anew, from a position before which all is durable
        totals = Counter()
        for row in landed(tmp_path / "table"):
            totals[row["word"]] = max(totals[row["word"]], row["total"])
        want = Counter(word for line in lines for word in line.split())
        assert all(totals[word] >= want[word] for word in want)
    else:
        assert ids >= {f"{i}.{j}.0" for i in range(2400) for j in range(8)}
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["deaths"] == 1
    assert not distinct(tmp_path / "table")
    if unit == "count":
        assert report["units"]["count"]["state_lost"] > 0


def test_a_killed_ack_server_is_replaced_and_nothing_is_missing(command, tmp_path):
    write_lines(tmp_path, 2400)
    command.start("words", "--ackers", "2", path="in.txt", out="table", rate=600, go=tmp_path / "go")
    victims = command.until(lambda: command.processes("ack-server"))
    command.until(lambda: landed(tmp_path / "table"))
    (tmp_path / "go").touch()
    victims[0].kill()
    code, _, err = command.wait()
    assert code == 0, err
    assert "ack server" in err
    ids = {row["_id"].split(":")[1] for row in landed(tmp_path / "table")}
    assert ids >= {f"{i}.{j}.0" for i in range(2400) for j in range(8)}


def test_without_acks_all_arrives_too_when_nothing_dies(command, tmp_path):
    lines = write_lines(tmp_path, 1200)
    code, _, err = command.run("words", "--acks", "off", path="in.txt", out="table")
    assert code == 0, err
    assert len(landed(tmp_path / "table")) == 8 * len(lines)


def test_the_local_engine_gives_the_same_table(command, tmp_path):
    lines = write_lines(tmp_path, 500)
    code, out, err = command.run("words", "--engine", "local", path="in.txt", out="table", p=2)
    assert code == 0, err
    assert "local engine" in out
    totals = Counter()
    for row in landed(tmp_path / "table"):
        totals[row["word"]] = max(totals[row["word"]], row["total"])
    assert totals == Counter(word for line in lines for word in line.split())
    assert distinct(tmp_path / "table")


def test_user_code_that_raises_ends_the_run_with_its_traceback_unit_and_key(command, tmp_path):
    code, _, err = command.run("of_bolt", "--report", "r.json", bolt="Boom")
    assert code == 1
    assert "ValueError: seven is too much" in err
    assert "unit 'worker'" in err
    assert "key 7" in err
    assert 'raise ValueError("seven is too much")' in err
    assert "esault/flow" not in err
    assert json.loads((tmp_path / "r.json").read_text())["ended"] == "failed"


def test_skipped_errors_are_counted_and_shown_once(command, tmp_path):
    code, out, err = command.run("skipping", "--report", "r.json")
    assert code == 0, err
    assert "seven is too much" in out + err
    assert json.loads((tmp_path / "r.json").read_text())["units"]["worker"]["errors"] == 1


def test_what_user_code_prints_and_logs_is_seen_and_marked(command):
    code, out, err = command.run("of_bolt", bolt="Talking", n=1)
    assert code == 0, err
    assert "] printed by the user" in out
    assert "[worker/" in out
    assert "logged by the user" in err
    assert "logged by the user" not in out


def test_a_read_that_returns_none_is_named(command):
    code, _, err = command.run("of_spout", spout="Never")
    assert code == 1
    assert "Never.read returned None" in err


@pytest.mark.parametrize(
    ("bolt", "cause"),
    # what is said of other causes is tested in unit/runtime/process/test_exits.py
    depth.chosen(
        [
            ("Dies", "it ended itself with exit code 3: look for what calls exit in it"),
            ("Crashes", "SIGSEGV: native code in it crashed"),
        ],
        [("Crashes", "SIGSEGV: native code in it crashed")],
    ),
)
def test_code_that_always_kills_its_process_ends_the_run_and_the_cause_is_named(command, bolt, cause):
    code, _, err = command.run("of_bolt", bolt=bolt)
    assert code == 1
    assert f"worker/2 died ({cause})" in err
    assert f"unit 'worker': its process died 10 times in a row, each time shortly after it was started ({cause})" in err


@pytest.mark.parametrize(
    ("bolt", "said"),
    [("Leaves", "process, key 0: SystemExit"), ("LeavesInTheEnd", "finish, key 0: SystemExit: no more")],
)
def test_code_that_leaves_by_sys_exit_ends_the_run_as_any_error_does(command, bolt, said):
    code, _, err = command.run("of_bolt", bolt=bolt, n=1)
    assert code == 1
    assert f"unit 'worker', {said}" in err
    assert "sys.exit(" in err  # the line
    assert "died" not in err


def catches(command, number):
    """Whether the command has a handler of its own for this signal (Linux)."""
    status = Path(f"/proc/{command.process.pid}/status").read_text()
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (number - 1) & 1


def says(command, begin):
    """Wait until it says a line that begins so: the plain view of a run begins with its seconds."""
    assert any(re.match(begin, line) for line in command.process.stderr), f"it ended and never said {begin}"


@pytest.mark.parametrize("number", depth.chosen([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGHUP]))
def test_a_signal_ends_the_run_in_order(command, tmp_path, number):
    command.start("endless", "--report", "r.json")
    command.running()
    command.until(lambda: all(unit["tuples_out"] for unit in command.status()["units"]))
    command.process.send_signal(number)
    code, _, err = command.wait()
    assert code == 0, err
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["ended"] == "drained"
    assert report["units"]["worker"]["tuples_in"] == report["units"]["numbers"]["tuples_out"] > 0
    assert not command.processes()


def test_a_reader_that_leaves_ends_the_run_in_order(command, tmp_path):
    command.start("endless", "--report", "r.json")
    assert command.process.stderr.readline()
    for pipe in (command.process.stderr, command.process.stdout):
        pipe.close()
    assert command.process.wait(200) == 1  # there was nobody to tell
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["ended"] == "drained"
    assert report["units"]["worker"]["tuples_in"] == report["units"]["numbers"]["tuples_out"] > 0
    assert not command.processes()


def test_a_signal_while_the_run_begins_ends_it_in_order_once_it_runs(command, tmp_path):
    command.start("endless", "--report", "r.json")
    command.until(lambda: catches(command, signal.SIGTERM))
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.wait()
    assert code == 0, out + err
    assert json.loads((tmp_path / "r.json").read_text())["ended"] == "drained"
    assert not command.processes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM] if depth.PROFILE == "deep" else [signal.SIGTERM])
def test_a_signal_ends_a_local_run_in_order(command, tmp_path, number):
    command.start("endless", "--engine", "local", "--report", "r.json")
    says(command, r"\d+ s ")
    command.process.send_signal(number)
    code, out, err = command.wait()
    assert code == 0, err
    assert "drained" in out
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["units"]["worker"]["tuples_in"] == report["units"]["numbers"]["tuples_out"] > 0


def test_seconds_end_the_run_in_order(command):
    code, out, err = command.run("endless", "--seconds", "0.5")
    assert code == 0, err
    assert "drained" in out


def test_a_second_signal_stops_at_once_also_a_bolt_that_never_returns(command):
    command.start("of_bolt", bolt="Stuck")
    command.until(lambda: command.processes("worker/"))
    says(command, r"\d+ s ")
    command.process.send_signal(signal.SIGINT)
    says(command, "ending in order")
    assert command.process.poll() is None
    command.process.send_signal(signal.SIGINT)
    code, _, _ = command.wait()
    assert code == 130
    assert not command.processes()


def test_a_killed_command_leaves_no_process_and_no_file(command):
    command.start("endless", rate=1000.0)
    command.until(lambda: command.processes("worker/"))
    command.process.kill()
    command.process.communicate()
    command.until(lambda: not command.processes())
    command.until(lambda: not run_dirs(command))


def test_a_killed_driver_ends_the_run(command):
    command.start("endless", rate=1000.0)
    command.until(lambda: command.processes("worker/"))
    command.processes("driver")[0].kill()
    code, _, err = command.wait()
    assert code != 0
    assert "driver" in err
    assert not command.processes()
    assert not run_dirs(command)


def test_two_runs_at_a_time_do_not_meet(command, other_command, tmp_path):
    write_lines(tmp_path, 1200)
    command.start("words", path="in.txt", out="one", rate=1200)
    other_command.start("words", path="in.txt", out="two", rate=1200)
    assert command.wait()[0] == other_command.wait()[0] == 0
    assert len(landed(tmp_path / "one")) == len(landed(tmp_path / "two")) == 9600


def test_two_runs_with_one_output_are_refused(command, other_command, tmp_path):
    write_lines(tmp_path, 60_000)
    command.start("words", path="in.txt", out="one", rate=300)
    command.until(lambda: landed(tmp_path / "one"))
    code, _, err = other_command.run("words", path="in.txt", out="one")
    assert code == 2, err
    assert "one" in err
    command.process.send_signal(signal.SIGTERM)
    assert command.wait()[0] == 0
    assert len({row["_id"] for row in landed(tmp_path / "one")}) == len(landed(tmp_path / "one")) > 0


def test_standard_input_is_read_to_its_end(command, tmp_path):
    command.start("stdin", stdin=subprocess.PIPE, out="o.jsonl")
    command.process.stdin.write("one\ntwo\n")
    code, _, err = command.wait()
    assert code == 0, err
    assert [json.loads(line)["value"] for line in (tmp_path / "o.jsonl").read_text().splitlines()] == ["one", "two"]


def test_strangers_at_the_sockets_achieve_nothing(command, tmp_path):
    import pickle
    import socket

    lines = write_lines(tmp_path, 1600)
    command.start("words", path="in.txt", out="table", rate=600, go=tmp_path / "go")
    command.until(lambda: landed(tmp_path / "table"))
    (folder,) = run_dirs(command)
    assert folder.stat().st_mode & 0o777 == 0o700
    evil = pickle.dumps(print)
    for endpoint in [*folder.glob("*.data"), *folder.glob("*.express")]:
        for junk in (b"", b"\xff" * 100, evil, b"\x95\x01\x01\x01\x01\x90", random.Random(1).randbytes(5000)):
            for greeting in (b"", PREFACE, PREFACE + HEADER.pack(len(junk)), PREFACE + HEADER.pack(2**32 - 1)):
                with socket.socket(socket.AF_UNIX) as stranger:
                    stranger.connect(str(endpoint))
                    stranger.sendall(greeting + junk)
    (tmp_path / "go").touch()
    code, _, err = command.wait()
    assert code == 0, err
    assert len(landed(tmp_path / "table")) == 8 * len(lines)


def test_a_sink_that_cannot_be_written_ends_the_run_with_the_path(command, tmp_path):
    write_lines(tmp_path, 10)
    (tmp_path / "o.jsonl").mkdir()
    code, _, err = command.run("lines_out", path="in.txt", out="o.jsonl")
    assert code == 2
    assert "o.jsonl" in err


def test_the_runs_own_metrics_land_beside_it(command, tmp_path):
    write_lines(tmp_path, 2000)
    code, _, err = command.run(
        "words", "--land-metrics", "metrics", "--report", "r.json", path="in.txt", out="table", p=2
    )
    assert code == 0, err
    report = json.loads((tmp_path / "r.json").read_text())
    windows = landed(tmp_path / "metrics" / "windows")
    for name, unit in report["units"].items():
        emitted = sum(row["emitted"] * row["seconds"] for row in windows if row["unit"] == name)
        assert emitted == pytest.approx(unit["tuples_out"])
    (told,) = landed(tmp_path / "metrics" / "runs")
    assert json.loads(told["report"]) == report
    assert len(landed(tmp_path / "metrics" / "changes")) == len(report["changes"])
