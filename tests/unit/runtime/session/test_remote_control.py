"""Requests from other machines: what each role may ask for, who gets no place, and what is kept of it."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest

from esault.cluster.audit import AuditLog
from esault.cluster.key import ClusterKey, make_key, make_role_key
from esault.errors import UsageError
from esault.runtime.session import remote_control
from esault.runtime.session.control_client import KEY, RemoteRun, ask, choose
from esault.runtime.session.control_server import ControlServer
from esault.runtime.session.control_socket import MOST, ControlSocket
from esault.runtime.session.remote_control import RemoteControl


@pytest.fixture
def keys(tmp_path):
    made = {"cluster": make_key(tmp_path / "cluster")}
    for role in ("look", "scale", "run"):
        made[role] = make_role_key(tmp_path / role, role, "alice", made["cluster"])
    return made


@pytest.fixture
def run(keys, tmp_path):
    """A run's sockets, and what it was asked for and may answer."""
    audit = AuditLog(tmp_path / "audit.jsonl")
    remote = RemoteControl("127.0.0.1:0", ClusterKey(keys["cluster"]), audit)
    control_socket = ControlSocket(tmp_path)
    asked = []
    server = ControlServer(control_socket, "words", "r1", asked.append, audit=audit)
    remote.serve(control_socket)
    control_socket.start()
    yield remote, server, asked, control_socket
    remote.close()
    remote.join()
    server.ended("drained")
    audit.close()


def said(run, request, key=None, monkeypatch=None):
    """The first answer to a request, given in this thread while the control socket's threads read it."""
    remote, server, _, control_socket = run
    if key is None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(control_socket._path))
    else:
        monkeypatch.setenv(KEY, str(key))
        connection = RemoteRun(remote.address).connect()
    with connection, connection.makefile("rb") as lines:
        connection.settimeout(0.02)
        connection.sendall(json.dumps(request).encode() + b"\n")
        for _ in range(1000):
            server.serve()
            try:
                return json.loads(lines.readline())
            except TimeoutError:
                lines = connection.makefile("rb")
    raise AssertionError("no answer")


def audited(tmp_path):
    return [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]


REQUESTS = {
    "look": {"do": "status"},
    "scale": {"do": "change", "unit": "count", "kind": "split"},
    "run": {"do": "stop"},
}


@pytest.mark.parametrize("role", list(REQUESTS))
def test_each_role_may_do_what_it_says_and_all_that_is_less(run, keys, tmp_path, monkeypatch, role):
    ranks = list(REQUESTS)
    for needed, request in REQUESTS.items():
        answer = said(run, request, keys[role], monkeypatch)
        if ranks.index(needed) <= ranks.index(role):
            assert "error" not in answer
        else:
            assert answer == {"error": f"this takes a key with the role {needed!r}, and yours has {role!r}"}
    kept = audited(tmp_path)
    assert [(each["do"], each["answer"] == "accepted") for each in kept] == [
        (request["do"], ranks.index(needed) <= ranks.index(role)) for needed, request in REQUESTS.items()
    ]
    assert all(each["who"].startswith(f"{role} alice ") and each["from"].startswith("127.0.0.1:") for each in kept)
    assert len(run[2]) == ranks.index(role)  # what was refused did not come to the run


def test_what_this_user_asks_at_the_socket_is_kept_too(run, tmp_path):
    assert "topology" in said(run, {"do": "status"})
    (kept,) = audited(tmp_path)
    assert kept["who"].startswith("uid ")
    assert (kept["from"], kept["do"], kept["answer"]) == ("", "status", "accepted")


def test_strangers_are_refused_and_kept_and_those_who_say_nothing_go(run, keys, tmp_path, monkeypatch):
    other = make_key(tmp_path / "other")
    monkeypatch.setenv(KEY, str(other))
    with pytest.raises(UsageError, match="does not answer"):
        list(ask(RemoteRun(run[0].address), {"do": "status"}))
    with pytest.raises(UsageError, match="does not answer"):
        choose("127.0.0.1:1")
    host, _, port = run[0].address.rpartition(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b'{"do": "stop"}\n')
        with contextlib.suppress(ConnectionError):
            while plain.recv(100):  # what TLS says to it
                pass
    monkeypatch.setattr(remote_control, "_WITHIN", 0.1)
    with socket.create_connection((host, int(port))) as silent:
        assert silent.recv(100) == b""  # it is hung up on
    for _ in range(MOST):  # none is being heard any more
        assert run[0]._places.acquire(timeout=10)
    assert run[2] == []
    assert {each["do"] for each in audited(tmp_path)} == {"connect"}
    assert len(audited(tmp_path)) == 3


def test_a_run_shows_the_clusters_key(keys):
    with pytest.raises(UsageError, match="a key with a role"):
        RemoteControl("127.0.0.1:0", ClusterKey(keys["run"]), None)
