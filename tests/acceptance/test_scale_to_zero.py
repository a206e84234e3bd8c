"""A run that gives all slots back when nothing comes, and goes on with its state when input comes."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest
from nodes import NodeProcess
from ports import free_port
from waiting import PATIENCE

from esault.cluster.key import ClusterKey, make_key
from esault.cluster.survey import ask
from esault.errors import UsageError
from esault.runtime.session.control_client import KEY, choose

pytestmark = pytest.mark.slow

ZERO = "scaled to zero"


def start(command, *options, **params):
    options = ("--checkpoint", "0.2", "--scale-to-zero", "1", "--policy", "none", *options)
    command.start("followed_tallies", *options, path="in/*.txt", out="out.jsonl", **params)
    command.until(lambda: command.status().get("phase") in ("running", ZERO))


def write(command, words):
    (command.folder / "in").mkdir(exist_ok=True)
    with (command.folder / "in" / "words.txt").open("a") as file:
        file.writelines(f"{word}\n" for word in words)


def at_zero(command, rows):
    """Wait until all that was written has been counted, and nothing runs any more."""
    out = command.folder / "out.jsonl"
    command.until(lambda: out.exists() and len(out.read_text().splitlines()) == rows)
    command.until(lambda: command.status().get("phase") == ZERO)


def check(command, words):
    """Each word was counted one by one, over all times that the run was there."""
    rows = [json.loads(line) for line in (command.folder / "out.jsonl").read_text().splitlines()]
    seen = Counter()
    wanted = [(word, (seen.update([word]), seen[word])[1]) for word in words]
    assert Counter((row["key"], row["value"]) for row in rows) == Counter(wanted)


def test_hosts_are_given_back_and_may_end_and_input_brings_the_run_back_with_its_state(command, nodes):
    words = [f"w{i % 7}" for i in range(200)]
    nodes.start("a", "b", slots=4)
    write(command, words[:100])
    start(command, *nodes.options)
    at_zero(command, 100)
    status = command.status()
    assert (status["slots"], status["hosts"], [unit["sub_units"] for unit in status["units"]]) == (0, {}, [0, 0, 0])
    assert command.processes() == []
    key = ClusterKey(nodes.key)
    command.until(lambda: all(ask(nodes[name].address, key).welcome.free == 4 for name in "ab"))
    with pytest.raises(UsageError, match="the run is scaled to zero: nothing is there that could be changed"):
        command.scale("tally", 2)
    for name in "ab":
        nodes[name].kill(signal.SIGTERM)
        assert nodes[name].process.wait(PATIENCE) == 0
    write(command, words[100:])
    command.until(lambda: command.status().get("phase") == "waiting for hosts")
    for name in "ab":
        address = nodes[name].address
        nodes[name].end()
        more = ("--key", nodes.key, "--slots", "4")
        nodes.nodes[name] = NodeProcess(command.folder, name, *more, listen=address).ready()
    at_zero(command, 200)
    code, out, err = command.stop()
    assert code == 0, err
    assert "there is input for unit 'lines': going on from checkpoint" in err + out
    assert "there is input, and the run cannot go on yet: host 127.0.0.1" in err + out
    check(command, words)


def test_one_that_is_ended_at_zero_has_paused_and_is_gone_on_with(command, other_command):
    words = ["a", "b", "a", "c", "a"]
    write(command, words[:3])
    start(command)
    at_zero(command, 3)
    command.process.send_signal(signal.SIGTERM)
    code, out, err = command.wait()
    assert code == 0, err
    assert "paused at checkpoint" in out
    write(command, words[3:])
    other_command.name = command.name
    start(other_command, "--resume")
    at_zero(other_command, 5)
    code, _, err = other_command.stop()
    assert code == 0, err
    check(command, words)


@pytest.mark.parametrize(
    ("flow", "options", "said"),
    [
        (
            "followed_tallies",
            (),
            "what is left while nothing runs is a checkpoint: say how often with --checkpoint SECONDS",
        ),
        (
            "followed_tallies",
            ("--checkpoint", "1", "--engine", "local"),
            "--scale-to-zero is for the engine actors, not local",
        ),
        (
            "served_tallies",
            ("--checkpoint", "1"),
            "unit 'lines' reads TcpLines, which cannot be looked at while nothing runs",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(command, flow, options, said):
    more = {"path": "in/*.txt", "out": "out.jsonl"} if flow == "followed_tallies" else {"out": "out.jsonl"}
    code, _, err = command.run(flow, "--scale-to-zero", "1", *options, **more)
    assert code == 2 and said in err


def test_other_machines_may_ask_it_at_one_port_while_it_is_there_and_while_it_is_not(command, monkeypatch):
    words = [f"w{i % 7}" for i in range(20)]
    write(command, words[:10])
    key, address = command.folder / "cluster.key", f"127.0.0.1:{free_port()}"
    make_key(key)
    monkeypatch.setenv(KEY, str(key))
    start(command, "--control", address, "--key", str(key))
    asked = lambda: choose(address).status.get("phase")
    at_zero(command, 10)
    assert asked() == ZERO
    write(command, words[10:])
    at_zero(command, 20)
    assert asked() == ZERO
    code, _, err = command.stop()
    assert code == 0, err
    check(command, words)
