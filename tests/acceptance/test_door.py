"""A running topology from another terminal: status, scale, stop; and what happens when one asks for nonsense."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import tempfile
from collections import Counter
from pathlib import Path

import depth
import esault_command
import in_process
import pytest
from test_runs import landed, run_dirs, write_lines

pytestmark = pytest.mark.slow
ROOT = str(Path(__file__).parents[2])


def esault(*arguments, timeout=200, cwd=None):
    """A command in another terminal: exit code, output, errors."""
    return esault_command.run(*arguments, timeout=timeout, cwd=cwd)


def door(command):
    return next(iter(run_dirs(command))) / "control"


@pytest.fixture
def words(command, tmp_path):
    """A paced word count that nothing scales by itself, and that is not over before its test is."""
    write_lines(tmp_path, 60_000)
    command.start("words", "--policy", "none", path="in.txt", out="table", p=1, rate=200.0, most=8)
    command.running()
    return command


def test_scale_up_and_down_at_load_and_stop_in_order(words, tmp_path):
    code, out, err = esault("scale", "count", "3", "--run", words.name)
    assert code == 0, err
    assert "1 -> 3 sub-units" in out
    assert "held back" in out
    assert "may change it again" not in out  # nothing scales it
    code, out, _ = esault("status", "--run", words.name, "--json")
    assert code == 0
    assert json.loads(out).keys() == words.status().keys()

    def sub_units() -> int:
        told = json.loads(esault("status", "--run", words.name, "--json")[1])
        return next(unit["sub_units"] for unit in told["units"] if unit["name"] == "count")

    words.until(lambda: sub_units() == 3)  # a run says what it is now and then
    code, out, _ = esault("status", "--run", words.name)
    assert code == 0
    assert "count" in out
    assert esault("scale", "count", "3", "--run", words.name)[1].strip().endswith("has 3 sub-units already")
    assert "3 -> 1 sub-unit in" in esault("scale", "count", "1", "--run", words.name)[1]
    code, out, err = esault("stop", "--run", words.name)
    assert (code, out.splitlines()[-1]) == (0, f"{words.name}: drained"), err
    code, out, err = words.wait()
    assert code == 0, err
    totals = Counter()
    rows = landed(tmp_path / "table")
    for row in rows:
        totals[row["word"]] = max(totals[row["word"]], row["total"])
    assert len(rows) == totals.total() > 0  # each update landed once, and the last one counts them all
    assert run_dirs(words) == []


def test_nonsense_is_refused_in_one_line_and_nothing_changes(words):
    before = [(u["name"], u["sub_units"]) for u in words.status()["units"]]
    for arguments, says in [
        (("count", "0"), "it needs one at least"),
        (("count", "-3"), "it needs one at least"),
        (("count", "many"), "not a valid integer"),
        (("cuont", "2"), "there is no unit 'cuont'; did you mean 'count'? There are: lines, split, count"),
        (("lines", "2"), "is a spout"),
        (("count", "99"), "max_parallelism is 8"),
        (("split", "99"), "more slots"),
    ]:
        code, _, err = in_process.esault("scale", *arguments, "--run", words.name)
        assert code == 2
        assert says in err
        assert "Traceback" not in err
        if "valid" not in says:
            assert len(err.strip().splitlines()) == 1, err
        assert [(u["name"], u["sub_units"]) for u in words.status()["units"]] == before


def processed(status):
    return {u["name"]: u["tuples_in"] for u in status["units"]}["count"]


def test_a_throttle_slows_a_unit_down_and_loses_nothing(words, tmp_path):
    code, out, err = esault("throttle", "count", "100", "--for", "600", "--run", words.name)
    assert (code, out) == (0, f"{words.name}, count: 100 tuples a second at most for 600 s\n"), err
    told = words.status()["now"]
    words.until(
        lambda: words.status()["now"] > told + 1
    )  # by now the sub-unit has heard of it, and said what it had done before
    first = words.status()
    words.until(lambda: words.status()["now"] > first["now"] + 2)
    last = words.status()
    # What is known of it may be old: a second more at either end. Without the throttle it would be 1 600 words a second.
    assert 0 < processed(last) - processed(first) <= 100 * (last["now"] - first["now"] + 2)
    code, _, err = esault("stop", "--run", words.name)  # which does not wait for its end
    assert code == 0, err
    code, _, err = words.wait()
    assert code == 0, err
    rows = landed(tmp_path / "table")
    totals = Counter()
    for row in rows:
        totals[row["word"]] = max(totals[row["word"]], row["total"])
    assert len(rows) == totals.total() > 0


def test_a_throttle_that_cannot_be_is_refused(words):
    no_rate = "unit 'count' cannot be throttled to {}: a rate is a number of tuples a second above 0"
    for arguments, says in [
        (("count", "0", "--for", "1"), no_rate.format(0)),
        (("count", "5", "--for", "0"), "its time is a number of seconds above 0, not 0.0"),
        (("count", "nan", "--for", "1"), no_rate.format("nan")),
        (
            ("cuont", "5", "--for", "1"),
            "there is no unit 'cuont'; did you mean 'count'? There are: lines, split, count",
        ),
        (("count", "5"), "Missing option '--for'"),
    ]:
        code, _, err = in_process.esault("throttle", *arguments, "--run", words.name)
        assert code == 2
        assert says in err
        assert "Traceback" not in err


def test_strangers_at_the_door_do_no_harm(words):
    path = door(words)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for data in (
        b"\x80\x04garbage\n",
        b"[1]\n",
        b'{"do": "dance"}\n',
        b'{"do": "scale", "unit": 3}\n',
        b'{"do": "throttle", "unit": "count", "rate": "fast", "seconds": 1}\n',
        b'{"do": "throttle", "unit": "count", "rate": NaN, "seconds": 1}\n',
        b"x" * 9000,
        b"",
    ):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(10)
            caller.connect(str(path))
            caller.sendall(data)
            caller.shutdown(socket.SHUT_WR)
            assert "error" in json.loads(caller.recv(4096))
    with socket.socket(socket.AF_UNIX) as silent:  # says nothing, and is still there
        silent.connect(str(path))
        assert words.status()["phase"] == "running"


def test_nothing_running_and_several_running(words, other_command, tmp_path):
    code, _, err = esault("scale", "count", "2", "--run", "nobody")
    assert code == 2
    assert "no running topology is named 'nobody'" in err
    other_command.start("endless", rate=1000.0)
    other_command.running()
    code, _, err = esault("stop")
    assert code == 2
    assert "say which with --run" in err
    assert words.name in err
    code, out, _ = esault("status")
    assert words.name in out
    assert other_command.name in out
    assert esault("stop", "--run", other_command.name)[0] == 0
    assert other_command.wait()[0] == 0


def test_without_a_running_topology_that_is_said():
    # A folder with a short name: a socket's path would not hold that of tmp_path, and what runs beside this test would be seen.
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": ROOT, "TMPDIR": folder, "XDG_RUNTIME_DIR": ""}
        for arguments in (["status"], ["scale", "count", "2"], ["stop"]):
            code, _, err = esault_command.run(*arguments, env=env)
            assert code == 2
            assert err.startswith("error: no topology is running")
            assert len(err.strip().splitlines()) == 1


def test_a_killed_command_leaves_no_door_that_answers(words):
    path = door(words)
    words.process.send_signal(signal.SIGKILL)
    words.wait()
    code, _, err = esault("status", "--run", words.name)
    assert code == 2
    assert words.name not in esault("status")[1]
    assert "Traceback" not in err
    assert str(path).startswith(tempfile.gettempdir())


@pytest.mark.parametrize("kind", depth.chosen(["folder", "fifo", "link"], ["link"]))
def test_a_report_never_replaces_what_is_no_file(command, tmp_path, kind):
    path = tmp_path / "report.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere")
    code, _, err = command.run("endless", "--report", "report.json", "--seconds", "1")
    assert code == 2
    assert "no regular file" in err
    assert not (tmp_path / "nowhere").exists()
    assert path.is_symlink() if kind == "link" else path.exists()
