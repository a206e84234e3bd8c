"""Two runs share the slots of two nodes by priority: one grows, the other shrinks while tuples flow, and none is lost or doubled."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest
from test_live_changes import unit

pytestmark = pytest.mark.slow


def start(run, nodes, priority, rate):
    options = ("--priority", str(priority), "--report", f"{run.name}.json")
    run.start("tallied", *nodes.options, *options, out=f"{run.name}.jsonl", seconds=0.05, rate=rate)
    run.running()


def width(run):
    return unit(run, "tally")["sub_units"]


def check(run):
    """Have it end; each key was counted one by one, and all that was read is there."""
    code, _, err = run.stop()
    assert code == 0, err
    report = json.loads((run.folder / f"{run.name}.json").read_text())
    seen = defaultdict(list)
    for line in (run.folder / f"{run.name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        seen[row["key"]].append(row["value"])
    assert all(values == list(range(1, len(values) + 1)) for values in seen.values())
    assert sum(map(len, seen.values())) == report["units"]["orders"]["tuples_out"]
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    return Counter((change["policy"], change["kind"]) for change in report["changes"] if not change["dropped"]), err


def test_a_run_of_higher_priority_gets_slots_of_a_lower_one_which_gets_them_back(command, other_command, nodes):
    low, high = command, other_command
    nodes.start("a", "b", slots=4)
    start(low, nodes, 1, rate=200.0)  # work for ten
    low.until(lambda: width(low) == 7)
    assert low.status()["free_slots"] == 0
    start(high, nodes, 9, rate=60.0)  # work for three
    low.until(lambda: width(low) <= 3)
    high.until(lambda: width(high) >= 3)
    hosts = low.status()["hosts"]
    others = [each for host in hosts.values() for each in host["others"]]
    assert {(name, priority) for name, priority, _ in others} == {(high.name, 9)}
    held = sum(len(host["sub_units"]) for host in hosts.values()) + sum(slots for _, _, slots in others)
    assert held <= 8
    changes, _ = check(high)
    assert ("preemption", "merge") not in changes
    low.until(lambda: width(low) == 7)
    changes, err = check(low)
    # it may have been asked for a slot that was not used in the end; but nothing swings
    assert 3 <= changes["preemption", "merge"] <= 8
    assert "go to a run of higher priority" in err


def test_what_cannot_be_shared_is_refused_with_the_remedy(command, other_command, nodes):
    nodes.start("a", slots=2)
    start(command, nodes, 5, rate=10.0)
    options = ("--priority", "5", *nodes.options)
    code, _, err = other_command.refused("tallied", *options, out="x.jsonl", seconds=0.0, rate=1.0)
    assert code == 1
    assert "takes 2 slots to begin, and the hosts have 0 free and 0 that runs of lower priority can give" in err
    for more, said in (
        ((), "--priority 5 says who gets slots of nodes first: name them with --hosts hosts.toml"),
        ((*nodes.options, "--slots", "2"), "say --budget 2 for the most"),
        (("--engine", "spark"), "name them with --hosts"),
    ):
        code, _, err = other_command.refused("tallied", "--priority", "5", *more, out="x.jsonl", seconds=0.0, rate=1.0)
        assert code == 2 and said in err
    check(command)
