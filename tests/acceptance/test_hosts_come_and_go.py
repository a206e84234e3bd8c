"""Hosts that join, drain, die, freeze and come back while tuples flow; each run counted to the last word."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter

import depth
import pytest
from nodes import NodeProcess
from ports import free_port
from test_checkpointed_runs import check, wanted, write_text
from test_hosts import hosts_of
from waiting import PATIENCE, until

from esault.runtime.remote.host_connection import SILENCE

pytestmark = pytest.mark.slow


def hosts(command):
    """The run's hosts, as `esault status` tells."""
    return command.status().get("hosts", {})


def checkpoint_of(command):
    return command.status().get("checkpoint", 0)


def report_of(folder):
    return json.loads((folder / "r.json").read_text())


def start(command, nodes, *options, flow="gated", rate=400.0, p=2, out="out.jsonl"):
    """A run that goes on until `end`."""
    more = {"path": "in.txt", "out": out, "gate": "gate", "rate": rate, "p": p}
    command.start(flow, *nodes.options, "--policy", "none", "--report", "r.json", *options, **more)
    command.running()


def end(command):
    """Let the run end; what it said."""
    (command.folder / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    return err


def test_a_host_joins_and_another_drains_and_nothing_is_lost_or_repeated(command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 1200)
    start(command, nodes, p=2)
    spouts_host = hosts(command)
    nodes.start("c", more=("--join", nodes["a"].address))
    until(lambda: "c" in hosts(command))
    command.scale("count", 4)
    until(lambda: any(n.startswith("count") for n in hosts(command)["c"]["sub_units"]))
    # the host without the spout can be emptied at once
    leaving = next(name for name in "ab" if not any(n.startswith("lines") for n in spouts_host[name]["sub_units"]))
    nodes[leaving].kill(signal.SIGTERM)
    assert nodes[leaving].process.wait(PATIENCE) == 0
    assert command.status()["phase"] == "running"
    assert leaving not in hosts(command)
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    assert f"host {leaving} drains" in err
    assert "c" in hosts_of(report, "count")


def test_a_run_begins_without_hosts_that_are_away_and_takes_them_when_they_are_there(command, nodes, tmp_path):
    away = f"127.0.0.1:{free_port()}"  # none that the system gives to a client meanwhile
    nodes.start("a", slots=5)
    # The run looks for it every two seconds: were its port given to a process of a, that would refuse a stranger.
    options = ("--key", nodes.key, "--slots", "4", "--join", nodes["a"].address)
    nodes.nodes["dead"] = NodeProcess(tmp_path, "dead", *options, listen=f"127.0.0.1:{free_port()}").ready()
    until(lambda: "node dead" in nodes["a"].said())
    nodes["dead"].kill()
    # a host by a name that it does not know itself by, and one that is away
    (tmp_path / "hosts.toml").write_text(f"hosts = {[nodes['a'].address.replace('127.0.0.1', 'localhost'), away]}\n")
    write_text(tmp_path, 1200)
    start(command, nodes)
    assert set(hosts(command)) == {"a"}
    late = nodes.nodes["late"] = NodeProcess(tmp_path, "late", "--key", nodes.key, "--slots", "4", listen=away)
    late.ready()
    until(lambda: "late" in hosts(command))
    command.scale("count", 4)
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert f"host {away} cannot be reached: Connection refused" in err
    said = [line for line in err.splitlines() if " offers " in line]
    assert [line.partition(" (")[0] for line in said] == ["host a", "host late"], "each host is announced once"
    assert "refused" not in nodes["a"].said()


def test_a_host_with_the_spout_drains_by_going_back_to_a_checkpoint(command, nodes, tmp_path):
    for name in "ab":  # as where a cloud takes a spot instance away
        nodes.start(name, slots=6, more=("--drain-when", f"test -e '{tmp_path}/{name}-is-taken-away'"))
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "0.3")
    until(lambda: checkpoint_of(command) >= 1)
    leaving = next(
        name for name, host in hosts(command).items() if any(n.startswith("lines") for n in host["sub_units"])
    )
    (tmp_path / f"{leaving}-is-taken-away").touch()
    assert nodes[leaving].process.wait(PATIENCE) == 0
    assert set(hosts(command)) == {"a", "b"} - {leaving}
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert len(report_of(tmp_path)["restores"]) == 1
    assert f"host {leaving} drains and lines/1 cannot be moved: all go back to checkpoint" in err
    assert "this host is about to be taken away" in nodes[leaving].said()


@pytest.mark.parametrize("how", depth.chosen(["killed", "frozen"], ["killed"]))
def test_a_host_that_is_lost_brings_all_back_to_a_checkpoint_and_each_count_lands_once(command, nodes, tmp_path, how):
    nodes.start("a", "b", "c")
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "0.3", p=3)
    until(lambda: checkpoint_of(command) >= 1)
    victim, began = nodes["b"], time.monotonic()
    if how == "killed":
        victim.kill()
    else:
        victim.freeze()
    until(lambda: "b" not in hosts(command))
    if how == "frozen":
        # it may have been stopped with the lock of the sink's file in its hand
        time.sleep(max(0.0, began + 4.0 - time.monotonic()))
        victim.freeze(False)
    until(lambda: command.status().get("phase") == "running")
    if how == "frozen":
        until(lambda: "b" in hosts(command))  # with a new host process
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert "host b is lost" in err
    assert len(report["restores"]) == 1
    if how == "frozen":
        assert f"host b is lost: no word from it for {SILENCE:g} s" in err
        until(lambda: re.search(r"is over: the driver is gone", victim.said()))


def test_at_least_once_no_line_of_a_host_that_died_is_missing(command, nodes, tmp_path):
    nodes.start("a", "b", "c", slots=2)
    lines = [f"line {i}" for i in range(2400)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    start(command, nodes, flow="passed", p=4)
    until(lambda: (tmp_path / "out.jsonl").exists() and (tmp_path / "out.jsonl").stat().st_size > 4_000)
    nodes["b"].kill()
    until(lambda: "b" not in hosts(command))
    err = end(command)
    landed = Counter(json.loads(line)["value"] for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert set(landed) == set(lines)
    assert report_of(tmp_path)["deaths"] >= 1
    assert "sub-units share slots with others" in err  # five of them, and four slots


def test_after_the_drivers_death_a_resumed_run_takes_over_from_the_checkpoint(command, other_command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "0.3")
    until(lambda: checkpoint_of(command) >= 2)
    command.processes("driver")[0].kill()
    assert command.wait()[0] == 1
    until(lambda: all("has left node" in nodes[name].said() for name in "ab"))
    other_command.name = command.name
    start(other_command, nodes, "--checkpoint", "0.3", "--resume")
    end(other_command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def test_the_last_host_of_a_run_that_is_lost_ends_it(command, nodes, tmp_path):
    nodes.start("a", slots=5)
    write_text(tmp_path, 1200)
    start(command, nodes)
    nodes["a"].kill()
    code, _, err = command.wait()
    assert code == 1
    assert "the last host of the run is lost" in err


def test_a_policy_moves_sub_units_from_host_to_host_and_nothing_is_lost_or_repeated(command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 1200)
    policy = "random:period=0.2,round=1,probability=1,cpu=false,memory=false,disk=false"
    start(command, nodes, "--policy", policy, p=1)
    until(lambda: command.status().get("changes"))
    end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    moved = [
        change for change in report["changes"] if change["kind"] == "move" and change["policy"].startswith("random")
    ]
    assert moved, report["decisions"]
    assert any(hosts_of(report, unit) == {"a", "b"} for unit in {change["unit"] for change in moved})
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)


def test_hosts_that_are_lost_one_after_the_other_between_two_checkpoints_do_not_end_the_run(command, nodes, tmp_path):
    nodes.start(*"abcde", slots=5)
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "60")
    for left in (4, 3, 2, 1):
        nodes[next(name for name, host in hosts(command).items() if host["sub_units"])].kill()
        until(lambda left=left: len(hosts(command)) == left and command.status().get("phase") == "running")
    end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert len(report_of(tmp_path)["restores"]) == 4
