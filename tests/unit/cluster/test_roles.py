"""Keys with roles, and keys that follow one another: who gets in where, and what is kept of it."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading

import pytest

from esault.cluster import audit as audit_module
from esault.cluster.audit import AuditLog
from esault.cluster.connection import Connection, Lost, call, listen
from esault.cluster.key import ClusterKey, make_key, make_role_key, retire, succeed
from esault.cluster.messages import ClockReply, ClockRequest, Member, Nodes, ReadMark, Refusal, StartHost, Welcome
from esault.cluster.node import Node
from esault.cluster.tls import Refused
from esault.cluster.versions import hello
from esault.errors import UsageError
from esault.messages.settings import Settings


def met(server, client):
    """Who each end of a connection says that the other is; raises what the caller is told."""
    server, client = ClusterKey(server), ClusterKey(client)
    listener = listen("127.0.0.1", 0)
    listener.setblocking(True)
    seen = []

    def answer():
        made, _ = listener.accept()
        connection = Connection(made, server.server, server=True)
        try:
            while not connection.receive():
                connection.wait(5.0)
            seen.append(str(connection.who(server)))
            connection.send(ClockReply(1, 0.0))
        except (Lost, Refused) as error:
            seen.append(str(error))
        connection.close(1.0)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        connection = call("127.0.0.1", listener.getsockname()[1], client.client, 5.0)
        try:
            connection.ask(ClockRequest(1), 5.0)
            return seen[0].split()[:-1], str(connection.who(client)).split()[:-1]
        finally:
            connection.close()
    finally:
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    made = {"cluster": make_key(folder / "cluster")}
    for role in ("look", "scale", "run"):
        made[role] = make_role_key(folder / role, role, f"the {role}er", made["cluster"])
    return made


def test_who_shows_a_key_with_a_role_is_known_by_it_and_by_its_name(keys):
    assert met(keys["cluster"], keys["cluster"]) == (["cluster"], ["cluster"])
    assert met(keys["cluster"], keys["look"]) == (["look", "the", "looker"], ["cluster"])
    assert stat.S_IMODE(keys["look"].stat().st_mode) == 0o600
    assert [ClusterKey(key).is_cluster for key in keys.values()] == [True, False, False, False]


def test_a_key_with_a_role_is_never_taken_for_a_node_nor_one_of_another_cluster(keys, tmp_path):
    with pytest.raises(Refused):
        met(keys["run"], keys["cluster"])
    with pytest.raises(Refused):
        met(keys["run"], keys["run"])
    with pytest.raises((Refused, Lost)):
        met(make_key(tmp_path / "other"), keys["run"])


def test_mistakes_in_making_keys_are_named(keys, tmp_path):
    with pytest.raises(UsageError, match="there is no role 'king'; there are: look, scale, run"):
        make_role_key(tmp_path / "x", "king", "", keys["cluster"])
    for make in (
        lambda: make_role_key(tmp_path / "x", "run", "", keys["look"]),
        lambda: succeed(tmp_path / "x", keys["run"]),
    ):
        with pytest.raises(UsageError, match="role"):
            make()
    with pytest.raises(UsageError, match="role"):
        retire(keys["look"])
    assert not (tmp_path / "x").exists()


def test_a_key_follows_another_and_both_are_accepted_until_the_old_one_is_retired(tmp_path):
    old = make_key(tmp_path / "old")
    before = tmp_path / "before"  # on a host to which nothing was copied yet
    before.touch(0o600)
    before.write_bytes(old.read_bytes())
    new = succeed(tmp_path / "new", old)
    for server, client in ((old, new), (new, old), (old, before), (before, old), (new, before)):
        if (server, client) != (new, before):
            assert met(server, client) == (["cluster"], ["cluster"])
    with pytest.raises((Refused, Lost)):  # which is why the old file is copied first
        met(new, before)
    of_new = make_role_key(tmp_path / "look", "look", "a", new)
    assert met(old, of_new)[0] == ["look", "a"]
    retire(new)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new)] == [0o600, 0o600]
    assert met(new, new) == (["cluster"], ["cluster"])
    for stale in (old, before):
        with pytest.raises((Refused, Lost)):
            met(new, stale)


def test_a_key_is_read_anew_when_its_file_changes_and_a_damaged_one_is_not(tmp_path, caplog):
    old = make_key(tmp_path / "old")
    held = ClusterKey(old)
    first = held.server
    assert held.server is first
    new = succeed(tmp_path / "new", old)
    assert held.server is not first
    assert len(held._accepted) == 2
    os.replace(new, old)
    second = held.server
    old.write_text("half of a k")
    assert held.server is second
    assert "what was read of it before is used" in caplog.text


class Caller:
    """Somebody who calls a node, turn by turn."""

    def __init__(self, node, key):
        self.node = node
        address, _, port = node.address.rpartition(":")
        self.connection = Connection(
            socket.create_connection((address, int(port))), ClusterKey(key).client, server=False
        )

    def ask(self, message):
        self.connection.send(message)
        for _ in range(1000):
            self.node.turn(0.01)
            got = self.connection.receive()
            if got:
                return got[0]
        raise AssertionError("no answer")


@pytest.fixture
def node(keys, tmp_path):
    made = Node("127.0.0.1:0", ClusterKey(keys["cluster"]), 4, name="a", audit=AuditLog(tmp_path / "audit.jsonl"))
    yield made
    made.close()


def audited(folder):
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


def test_a_node_does_for_each_role_what_it_may_and_keeps_who_asked(node, keys, tmp_path):
    order = StartHost("r1", "words", 9, "f", None, "m", (), "/", {}, Settings(), {}, None, 0.0, 0.0, "")
    for role in ("look", "scale"):
        caller = Caller(node, keys[role])
        assert isinstance(caller.ask(hello()), Welcome)
        assert isinstance(caller.ask(ClockRequest(1)), ClockReply)
        refused = caller.ask(order)
        assert isinstance(refused, Refusal)
        assert f"has the role '{role}', and this takes 'run'" in refused.text
        assert "esault keys FILE --role run --of CLUSTER_KEY" in refused.text
        caller.connection.close()
    looker = Caller(node, keys["look"])
    looker.ask(hello())
    assert isinstance(looker.ask(ReadMark("/etc/.esault-mark-x")), Refusal)
    looker.connection.close()
    runner = Caller(node, keys["run"])
    assert isinstance(runner.ask(hello()), Welcome)
    assert "4 of 4 slots free, not 9" in runner.ask(order).text  # it may, and there is no room
    runner.connection.close()
    # nobody but a holder of the cluster's key is a node
    joining = Caller(node, keys["run"])
    assert "takes 'cluster'" in joining.ask(hello("b", "10.0.0.2:7420")).text
    joining.connection.close()
    member = Caller(node, keys["run"])
    member.ask(hello())
    member.connection.send(Nodes((Member("x", "10.0.0.9:1"),), False))
    for _ in range(50):
        node.turn(0.01)
    assert set(node._members) == {"a"}
    member.connection.close()
    said = audited(tmp_path)
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600
    asked = [(each["who"].split()[0], each["do"], each["answer"].partition(",")[0]) for each in said if each["who"]]
    assert ("look", "look", "accepted") in asked
    assert ("scale", "start", f"the key of {said[2]['who']} has the role 'scale'") in asked
    assert any(who == "run" and do == "start" and "4 of 4 slots free" in answer for who, do, answer in asked)
    assert any(who == "run" and do == "join" for who, do, _ in asked)
    assert all(each["from"].startswith("127.0.0.1:") and each["time"] for each in said)
    started = next(each for each in said if each["do"] == "start")
    assert (started["run"], started["topology"], started["slots"]) == ("r1", "words", 9)


def test_an_audit_log_is_rotated_and_a_full_disk_ends_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(audit_module, "FILE_BYTES", 1000)
    log = AuditLog(tmp_path / "audit.jsonl")
    for i in range(200):
        log.write("run alice 12ab", "10.0.0.1:5", "scale", "accepted", unit="count", n=i)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.jsonl", *(f"audit.jsonl.{i}" for i in range(1, 10))]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])["n"] == 199
    log.close()
    monkeypatch.setattr(log._file, "line", lambda text: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    log.write("", "", "look", "accepted")
    log.write("", "", "look", "accepted")
    assert caplog.text.count("the audit log cannot be written") == 1
    with pytest.raises(UsageError, match="cannot be written"):
        AuditLog(tmp_path / "no" / "folder" / "audit.jsonl")
