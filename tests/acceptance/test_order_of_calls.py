"""On real processes too the hooks of spouts and sinks are called in an order that they may rely on."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import depth
import pytest

pytestmark = pytest.mark.slow
PLACE = Path(__file__).parents[1] / "contract" / "recorded.py"
_spec = importlib.util.spec_from_file_location("recorded", PLACE)
recorded = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recorded)


def hooks(said, kind):
    return {call["hook"] for (each, _), calls in recorded.of_each(said).items() if each == kind for call in calls}


@pytest.mark.parametrize("spout", depth.chosen(["numbers", "stream", "windows"], ["windows"]))
def test_in_a_run_that_loses_processes_is_paused_and_goes_on(command, tmp_path, spout):
    said = tmp_path / "said.jsonl"
    options = ("--checkpoint", "0.2", "--policy", "none")
    gate = tmp_path / "gate"  # it must not be over on a busy machine
    params = {"said": said, "spout": spout, "n": 3000, "gate": gate}
    command.start(f"{PLACE}:topology", *options, **params)
    command.running()
    for number, victim in enumerate(["count/", "numbers/", "count/"], 1):
        before = command.status().get("checkpoint", 0)
        command.until(lambda before=before: command.status().get("checkpoint", 0) > before)
        command.processes(victim)[0].kill()
        command.until(lambda number=number: command.status().get("restores") == number)
    command.until(lambda: command.status().get("phase") == "running")
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.wait()
    assert code == 0, err
    assert "paused" in out
    assert recorded.illegal(said) == []
    gate.touch()
    code, out, err = command.run(f"{PLACE}:topology", *options, "--resume", **params)
    assert code == 0, err
    assert "drained" in out
    assert recorded.illegal(said) == []
    kind = "Stream" if spout == "stream" else "Numbers"
    own = set() if spout == "stream" else {"position", "seek", "commit"}
    assert hooks(said, kind) == {"check", "open", "read", "due", "progress", "lag", "close"} | own
    rows = {"check", "begin", "end", "open", "write", "prepare", "commit", "forget_staged", "close"}
    assert hooks(said, "Rows") == rows


def test_in_a_run_without_checkpoints_whose_processes_are_replaced(command, tmp_path):
    said = tmp_path / "said.jsonl"
    command.start(f"{PLACE}:topology", said=said, n=3000, gate=tmp_path / "gate")
    command.running()
    for victim in ("numbers/", "count/"):
        known = {process.pid for process in command.processes(victim)}
        command.processes(victim)[0].kill()
        command.until(lambda known=known, victim=victim: {p.pid for p in command.processes(victim)} - known)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    assert recorded.illegal(said) == []
    assert hooks(said, "Numbers") >= {"open", "read", "commit", "lag", "close"}


@pytest.mark.parametrize("hook", depth.chosen(["lag", "commit", "close"], ["commit", "close"]))
def test_a_hook_that_raises_ends_the_run_with_its_name_and_close_harms_nobody(command, tmp_path, hook):
    said = tmp_path / "said.jsonl"
    code, out, err = command.run(f"{PLACE}:topology", "--checkpoint", "0.2", said=said, n=800, fails=hook)
    assert recorded.illegal(said) == []
    assert f"unit 'numbers', {hook}: " in out + err
    assert f"ValueError: {hook} fails" in out + err
    assert code == (0 if hook == "close" else 1)
