"""On real processes, too, windows close by the clock while the source is silent, each once, also behind a resume."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow
PLACE = Path(__file__).with_name("silent.py")


def killed(command, name):
    """Kill one process of this unit; whether there was one just now."""
    for process in command.processes(name)[:1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            return True
    return False


def test_a_window_closes_in_silence_once_whoever_dies(command, tmp_path):
    end, said, out = tmp_path / "end", tmp_path / "said", tmp_path / "out.jsonl"
    state = ("--checkpoint", "0.2", "--state", str(tmp_path / "state"), "--policy", "none")
    command.start(f"{PLACE}:topology", *state, end=end, out=out, said=said)
    command.running()
    command.until(lambda: command.status().get("checkpoint", 0) > 1)
    command.process.kill()  # before the window has closed, or behind it: it closes once
    command.wait()
    command.start(f"{PLACE}:topology", *state, "--resume", end=end, out=out, said=said)
    command.until(said.exists)  # no tuple has come since
    number = command.status().get("checkpoint", 0)
    command.until(lambda: command.status().get("checkpoint", 0) > number)
    for victim in ("takings/", "payments/"):
        command.until(lambda victim=victim: killed(command, victim))  # all go back when the first has died
    number = command.status().get("checkpoint", 0)
    command.until(lambda: command.status().get("checkpoint", 0) > number)
    end.touch()
    code, _, err = command.wait()
    assert code == 0, err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["value"] for row in rows] == [{"from": 0, "paid": 3}]
