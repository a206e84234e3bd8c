"""Nothing is lost where streams begin: rotated logs, pipes and sockets under real processes that are killed and stopped."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from test_checkpointed_runs import checkpoint_of

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
