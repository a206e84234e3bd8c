"""Nothing is lost where streams begin: rotated logs, pipes and sockets under real processes that are killed and stopped."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import depth
import pyarrow.parquet as pq
import pytest
from test_checkpointed_runs import checkpoint_of

from esault.sinks.landing import parts

pytestmark = pytest.mark.slow
EDGES = str(Path(__file__).with_name("edges.py"))


def landed(path):
    return [json.loads(line)["value"] for line in path.read_text().splitlines()]


def newer_checkpoint(command):
    number = checkpoint_of(command)
    command.until(lambda: checkpoint_of(command) > number + 1)


def test_a_log_that_is_rotated_and_a_death_before_the_next_checkpoint_lose_no_line(command, tmp_path):
    log, count = tmp_path / "a.log", 0

    def write(lines):
        nonlocal count
        with log.open("a") as file:
            file.writelines(f"line {i}\n" for i in range(count, count + lines))
        count += lines

    write(300)
    more = {"path": "a.log", "out": "out.jsonl"}
    command.start(f"{EDGES}:followed", "--checkpoint", "0.3", "--policy", "none", **more)
    command.running()
    newer_checkpoint(command)
    (spout,) = command.processes("lines")
    spout.suspend()  # nothing is read while the log is rotated three times
    for packed in (True, False, False):
        write(100)
        for number in (2, 1):
            for suffix in ("", ".gz"):
                if os.path.exists(f"{log}.{number}{suffix}"):
                    os.rename(f"{log}.{number}{suffix}", f"{log}.{number + 1}{suffix}")
        log.rename(f"{log}.1")
        if packed:
            (tmp_path / "a.log.1.gz").write_bytes(gzip.compress((tmp_path / "a.log.1").read_bytes()))
            (tmp_path / "a.log.1").unlink()
    write(50)
    spout.kill()
    command.until(lambda: command.status().get("restores") == 1)
    write(50)
    newer_checkpoint(command)
    log.rename(f"{log}.1")
    write(50)
    code, _, err = command.stop()
    assert code == 0, err
    code, _, err = command.run(f"{EDGES}:followed", "--checkpoint", "0.3", "--seconds", "3", "--resume", **more)
    assert code == 0, err
    assert landed(tmp_path / "out.jsonl") == [f"line {i}" for i in range(count)]


def test_a_crash_between_the_end_of_the_sinks_and_its_mark_is_no_obstacle_to_resume(command, tmp_path):
    (tmp_path / "in.txt").write_text("".join(f"w{i % 7}\n" for i in range(700)))
    more = {"path": "in.txt", "out": "out.jsonl"}
    code, _, _ = command.run(f"{EDGES}:crashing", "--checkpoint", "0.3", **more)
    assert code == -signal.SIGKILL
    command.until(lambda: command.processes() == [])
    assert not (tmp_path / ".esault" / command.name / "ended").exists()
    code, out, err = command.run(f"{EDGES}:crashing", "--checkpoint", "0.3", "--resume", **more)
    assert code == 0, err
    assert "drained" in out
    assert sorted(landed(tmp_path / "out.jsonl")) == sorted([*range(1, 101)] * 7)
    rows = [row for part in parts(tmp_path / "table") for row in pq.read_table(part).to_pylist()]
    assert sorted((row["word"], row["n"]) for row in rows) == sorted(
        (f"w{i}", n) for i in range(7) for n in range(1, 101)
    )


def test_a_topology_that_prints_when_it_is_imported_runs_on_hosts(command, nodes, tmp_path):
    nodes.start("a")
    place = Path(__file__).with_name("talkative.py")
    code, out, err = command.run(f"{place}:topology", *nodes.options, "--policy", "none", out="out.jsonl")
    assert code == 0, err
    assert "drained" in out
    assert len(landed(tmp_path / "out.jsonl")) == 1000
    assert "port of call: none" in nodes["a"].said()


@pytest.mark.parametrize("checkpoint", depth.chosen([("--checkpoint", "1"), ()], [("--checkpoint", "1")]))
def test_a_signal_to_every_process_at_once_ends_the_run_in_order(command, tmp_path, checkpoint):
    """As systemd sends it, to all of a control group."""
    (tmp_path / "a.log").write_text("".join(f"line {i}\n" for i in range(500)))
    more = {"path": "a.log", "out": "out.jsonl"}
    command.start(f"{EDGES}:followed", *checkpoint, "--policy", "none", "--report", "r.json", **more)
    command.running()
    command.until(lambda: all(unit["tuples_out"] for unit in command.status()["units"]))
    processes = [*command.processes(), command.process]
    assert len(processes) > 4
    for process in processes:
        process.send_signal(signal.SIGTERM)
    code, _, err = command.wait()
    assert code == 0, err
    assert json.loads((tmp_path / "r.json").read_text())["ended"] == ("paused" if checkpoint else "drained")
    assert landed(tmp_path / "out.jsonl") == [f"line {i}" for i in range(500)]
    assert not command.processes()


EARLY = """
import os, signal, sys
from esault.runtime.session import session
from esault import run

class Interrupted(session.RunDir):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

session.RunDir = Interrupted
sys.path.insert(0, sys.argv[1])
import edges
print(run(edges.followed, params={"name": "early", "path": "a.log", "out": "out.jsonl"}).ended)
"""


def test_an_early_ctrl_c_leaves_no_folder(tmp_path):
    before = set(Path(os.environ["XDG_RUNTIME_DIR"]).glob("esault-*"))
    place = Path(__file__).parent
    done = subprocess.Popen(
        [sys.executable, "-c", EARLY, str(place)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place.parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = done.communicate(timeout=200)
    assert done.returncode == 0, err
    assert out == "drained\n"
    left = set(Path(os.environ["XDG_RUNTIME_DIR"]).glob(f"esault-{done.pid}-*"))
    assert not left - before


LINES = 20_000


@pytest.fixture
def pipe():
    """A pipe whose ends stay open from one run to the next, and a writer that fills it as it is read."""
    receiving, sending = os.pipe()

    def write():
        with os.fdopen(sending, "w") as out:
            out.writelines(f"line {i}\n" for i in range(LINES))

    writer = threading.Thread(target=write, daemon=True)
    yield receiving, writer
    os.close(receiving)


@pytest.mark.parametrize("checkpoint", depth.chosen([("--checkpoint", "0.5"), ()], [("--checkpoint", "0.5")]))
def test_a_run_on_a_pipe_that_is_stopped_loses_no_line_that_it_took(command, tmp_path, pipe, checkpoint):
    receiving, writer = pipe
    writer.start()
    command.start(f"{EDGES}:piped", *checkpoint, "--policy", "none", stdin=receiving, out="out.jsonl")
    command.running()
    command.until(lambda: next(u for u in command.status()["units"] if u["name"] == "slow")["tuples_in"] > 500)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.wait()
    assert code == 0, err
    lines = landed(tmp_path / "out.jsonl")
    assert writer.is_alive()
    if checkpoint:
        assert len(lines) < LINES
        code, _, err = command.run(f"{EDGES}:piped", *checkpoint, "--resume", stdin=receiving, out="out.jsonl")
        assert code == 0, err
        lines = landed(tmp_path / "out.jsonl")
    else:
        with os.fdopen(os.dup(receiving)) as rest:
            half = re.search(r"is not read.*: \(b'(.*)', \d+\)", err)
            left = (half[1] if half else "") + rest.read()
            lines += left.splitlines()
    assert sorted(lines) == sorted(f"line {i}" for i in range(LINES))


def test_a_run_on_a_socket_that_is_stopped_loses_no_line_that_came(command, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    more = {"out": "out.jsonl", "port": port}
    command.start(f"{EDGES}:served", "--checkpoint", "0.5", "--policy", "none", **more)
    command.running()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"".join(b"line %d\n" % i for i in range(LINES)))
        command.until(lambda: next(u for u in command.status()["units"] if u["name"] == "slow")["tuples_in"] > 500)
        code, _, err = command.stop()
    assert code == 0, err
    assert len(landed(tmp_path / "out.jsonl")) < LINES
    command.start(f"{EDGES}:served", "--checkpoint", "0.5", "--resume", "--policy", "none", **more)
    command.running()
    command.until(lambda: next(u for u in command.status()["units"] if u["name"] == "slow")["tuples_in"] > 0)
    command.until(lambda: len(landed(tmp_path / "out.jsonl")) == LINES)
    code, _, err = command.stop()
    assert code == 0, err
    assert sorted(landed(tmp_path / "out.jsonl")) == sorted(f"line {i}" for i in range(LINES))
