"""Keys on real hosts: the cluster's key is replaced while a run goes on, and others run, scale and look by keys of their own."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from nodes import NodeProcess
from test_checkpointed_runs import check, wanted, write_text
from test_door import esault
from test_hosts_come_and_go import end, hosts, start
from waiting import until

from esault.cluster.key import make_key, make_role_key, retire, succeed
from esault.runtime.process.run_dir import living_run_dirs

pytestmark = pytest.mark.slow


def test_the_clusters_key_is_replaced_under_a_run_that_was_started_by_a_key_with_a_role(command, nodes, tmp_path):
    cluster = tmp_path / "key"
    nodes.start("a", more=("--audit", "node.jsonl"))
    nodes.start("b")
    scale, runs = (make_role_key(tmp_path / r, r, f"{r}-anna", cluster) for r in ("scale", "run"))
    write_text(tmp_path, 1200)
    # a run is started by a key with the role `run`, and by none that is less
    (tmp_path / "hosts.toml").write_text(f"hosts = {[nodes[name].address for name in 'ab']}\n")
    refused = (*nodes.options[:2], "--key", str(scale))
    code, _, err = command.run("gated", *refused, path="in.txt", out="no.jsonl", gate="gate", rate=400.0, p=2)
    assert code != 0
    assert "has the role 'scale', and this takes 'run'" in err
    nodes.key = str(runs)
    start(command, nodes, "--checkpoint", "0.3")
    # the keys that its processes show are its own
    own = [folder / "key" for folder in living_run_dirs() if (folder / "key").exists()]
    assert len(own) >= 3  # of the driver and of both hosts
    assert all(key.stat().st_mode & 0o077 == 0 for key in own)
    assert not {key.read_text() for key in own} & {cluster.read_text(), runs.read_text()}
    # another key for the cluster, in three steps; what runs is not touched
    new = succeed(tmp_path / "next", cluster)
    late = tmp_path / "late"
    shutil.copy(new, late)
    nodes.nodes["c"] = NodeProcess(
        tmp_path, "c", "--key", str(late), "--slots", "4", "--join", nodes["a"].address
    ).ready()
    until(lambda: "node c" in nodes["a"].said())
    os.replace(new, cluster)
    retire(cluster)
    # by the old key nobody gets in any more, by a new one with a role he does
    code, _, err = esault(
        "node", "--listen", "127.0.0.1:0", "--name", "d", "--key", str(runs), "--join", nodes["a"].address
    )
    assert (code, "a node takes the cluster's own" in err) == (2, True)
    until(lambda: set(hosts(command)) >= {"a", "b"})
    nodes["b"].kill()  # all go back to a checkpoint, on a host that it reaches by the run's own key
    until(lambda: "b" not in hosts(command))
    until(lambda: command.status().get("phase") == "running")
    end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    said = [json.loads(line) for line in (tmp_path / "node.jsonl").read_text().splitlines()]
    assert any(each["do"] == "start" and "run-anna" in each["who"] and each["answer"] == "accepted" for each in said)
    assert any(each["do"] == "start" and "scale-anna" in each["who"] and "role" in each["answer"] for each in said)
    assert any(each["do"] == "join" and each.get("name") == "c" and each["answer"] == "accepted" for each in said)


def test_others_look_at_a_run_and_scale_it_by_keys_with_roles_and_it_is_kept(command, tmp_path, monkeypatch):
    cluster = make_key(tmp_path / "key")
    look, scale = (make_role_key(tmp_path / r, r, f"{r}-anna", cluster) for r in ("look", "scale"))
    write_text(tmp_path, 1200)
    command.start(
        "gated", "--control", "127.0.0.1:0", "--key", str(cluster), "--audit", "audit.jsonl", "--policy", "none",
        path="in.txt", out="out.jsonl", gate="gate", rate=400.0, p=2,
    )  # fmt: skip
    assert command.process is not None
    address = ""
    while not address:
        line = command.process.stderr.readline()
        if "other machines may ask at " in line:
            address = line.split("may ask at ")[1].split(",")[0]
    command.running()

    def asked(key, *words):
        monkeypatch.setenv("ESAULT_KEY", str(key))
        return esault(*words, "--run", address)

    code, out, err = asked(look, "status")
    assert (code, command.name in out) == (0, True), err
    code, _, err = asked(look, "scale", "count", "3")
    assert (code, "this takes a key with the role 'scale', and yours has 'look'" in err) == (2, True), err
    code, out, err = asked(scale, "scale", "count", "3")
    assert (code, "2 -> 3 sub-units" in out) == (0, True), err
    code, _, err = asked(scale, "stop")
    assert (code, "takes a key with the role 'run'" in err) == (2, True), err
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    said = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    changed = [each for each in said if each["do"] == "scale" and each["answer"] == "accepted"]
    assert [(each["unit"], each["n"]) for each in changed] == [("count", 3)]
    assert "scale scale-anna" in changed[0]["who"]
    assert [each["who"].split()[0] for each in said if each["answer"] != "accepted"] == ["look", "scale"]
