"""A node and who calls it, turn by turn in one process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace

import pytest

from esault.cluster import host_processes, slot_pool
from esault.cluster.connection import Connection, crowding
from esault.cluster.key import ClusterKey, make_key
from esault.cluster.messages import (
    ClockReply,
    ClockRequest,
    Hello,
    HostStarted,
    Member,
    Nodes,
    Refusal,
    StartHost,
    Welcome,
)
from esault.cluster.node import Node
from esault.cluster.slot_messages import SlotDemand, SlotGrant
from esault.cluster.versions import hello, installed
from esault.messages.settings import Settings


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return ClusterKey(make_key(tmp_path_factory.mktemp("keys") / "key"))


@pytest.fixture
def node(key):
    made = Node("127.0.0.1:0", key, 4, name="a")
    yield made
    made.close()


@pytest.fixture
def call(node, key):
    """Makes peers of the node."""
    peers = []

    def make(first=None):
        peers.append(Peer(node, key, first))
        return peers[-1]

    yield make
    for each in peers:
        each.connection.close()


class Peer:
    """Somebody who calls the node."""

    def __init__(self, node, key, first=None):
        self.node = node
        address, _, port = node.address.rpartition(":")
        self.connection = Connection(socket.create_connection((address, int(port))), key.client, server=False)
        self.said = []
        self.ask(first or hello())

    def ask(self, letter):
        """What the node answers, turn by turn."""
        self.connection.send(letter)
        return self.hear()

    def hear(self, turns=1000):
        for _ in range(turns):
            self.node.turn(0.01)
            got = self.connection.receive()
            if got:
                self.said += got
                return got[0]
        raise AssertionError("no answer")


def order(run="r1", slots=1):
    return StartHost(run, "t", slots, "f", None, "m", (), "/", {}, Settings(), {}, None, 0.0, 0.0, "")


def shared_order(run, slots, priority):
    return replace(order(run, slots), priority=priority)


def program(monkeypatch, text):
    """In place of the host process."""
    monkeypatch.setattr(host_processes, "_PROGRAM", (sys.executable, "-S", "-c", text))


def test_callers_without_end_do_not_keep_the_node_from_those_it_knows(node, call):
    peer = call()
    place = node._listener.getsockname()
    strangers = [socket.create_connection(place) for _ in range(40)]
    try:
        peer.connection.send(ClockRequest(7))
        node.turn(0.1)  # one turn: the caller is heard although not all strangers have been
        assert isinstance(peer.connection.receive()[0], ClockReply)
        assert len(node._callers) < 40
        for _ in range(20):
            node.turn(0)
        assert len(node._callers) == 41
    finally:
        for each in strangers:
            each.close()


def test_who_calls_again_and_again_pushes_out_nobody_but_himself():
    peers = ["10.0.0.9:1", *(f"10.0.0.8:{port}" for port in range(5)), "[fd00::1]:7", "10.0.0.9:2"]
    assert crowding(peers) == 1
    assert crowding(["10.0.0.9:1", "10.0.0.8:1"]) == 0


def test_a_mistake_in_what_one_caller_says_ends_nothing_else(node, call, caplog):
    peer = call()
    evil = call()
    evil.connection.send(Nodes(("no member",), False))  # of the right class, with a wrong thing in it
    assert isinstance(peer.ask(ClockRequest(1)), ClockReply)
    assert "cannot deal with" in caplog.text


def test_a_host_process_that_cannot_be_started_is_refused_and_the_node_goes_on(node, call, monkeypatch, tmp_path):
    peer = call()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    refused = peer.ask(order())
    assert isinstance(refused, Refusal)
    assert "cannot start a process" in refused.text
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(host_processes, "_PROGRAM", (str(tmp_path / "none"),))
    assert "cannot start a process" in peer.ask(order()).text
    assert list(tmp_path.iterdir()) == []
    program(monkeypatch, "import time; print('port 77', flush=True); time.sleep(60)")
    assert peer.ask(order()) == HostStarted("r1", 77)


def test_what_a_host_process_says_before_it_ends_is_heard_and_its_order_does_not_stay(
    node, call, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program(monkeypatch, "print('refused no such\\\\nmodule')")
    peer = call()
    peer.connection.send(order())
    for _ in range(1000):
        node.turn(0.01)
        if len(node._host_processes):
            break
    for each in node._host_processes._all.values():
        each.process.wait()  # it has said it and is gone before the node looks
    node._host_processes.look()
    assert peer.hear() == Refusal("no such\nmodule")
    assert list(tmp_path.iterdir()) == []
    program(monkeypatch, "raise SystemExit(3)")
    assert "exit code 3" in peer.ask(order()).text
    program(monkeypatch, "print('later no room')")
    assert peer.ask(order("r2")) == Refusal("no room", for_now=True)


RUNS = "import time; print('port 77', flush=True); time.sleep(60)"


def answer(peer, message, *kinds):
    """What the node answers of these kinds; other news come between."""
    peer.connection.send(message)
    while not isinstance(found := peer.hear(), kinds):
        pass
    return found


def waiting(node, run):
    for _ in range(1000):
        if run in node._host_processes._waiting:
            return True
        node.turn(0.01)
    return False


def test_runs_share_slots_by_priority_and_one_that_begins_waits_for_those_of_lower_ones(node, call, monkeypatch):
    program(monkeypatch, RUNS)
    monkeypatch.setattr(slot_pool, "PREEMPT_AFTER", 0.0)
    low, high, late = call(), call(), call()
    assert answer(low, shared_order("low", 4, 1), HostStarted) == HostStarted("low", 77)
    assert answer(low, SlotDemand(0, 4, 4, 1), SlotGrant).slots == 4
    refused = answer(late, shared_order("late", 1, 1), Refusal)
    assert "has 0 of 4 slots free, not 1 (t has 4)" in refused.text
    high.connection.send(shared_order("high", 2, 9))
    assert waiting(node, "high")
    while (grant := low.hear()).slots != 2:  # no more are asked of it than are wanted
        pass
    low.connection.send(SlotDemand(grant.number, 2, 4, 1))
    while not isinstance(started := high.hear(), HostStarted):
        pass
    assert started == HostStarted("high", 77)
    welcome = call().said[0]
    assert [(each.name, each.priority, each.slots) for each in welcome.shares] == [("t", 1, 2), ("t", 9, 2)]
    assert welcome.free == 0


def test_a_run_that_waits_for_slots_is_forgotten_when_it_hangs_up_and_refused_when_the_node_drains(
    node, call, monkeypatch
):
    program(monkeypatch, RUNS)
    low, high, again = call(), call(), call()
    answer(low, shared_order("low", 4, 1), HostStarted)
    answer(low, SlotDemand(0, 4, 4, 1), SlotGrant)
    high.connection.send(shared_order("high", 2, 9))
    assert waiting(node, "high")
    high.connection.close()
    for _ in range(1000):
        node.turn(0.01)
        if not node._host_processes._waiting:
            break
    assert "high" not in node._host_processes.pool.claims
    again.connection.send(shared_order("again", 2, 9))
    assert waiting(node, "again")
    node.drain()
    while not isinstance(refused := again.hear(), Refusal):
        pass
    assert "drains" in refused.text


def test_who_hangs_up_before_his_host_process_listens_leaves_no_slot_taken(node, call, monkeypatch):
    program(monkeypatch, "import time; time.sleep(60)")
    driver = call()
    driver.connection.send(order("killed", 4))
    for _ in range(1000):
        if node._host_processes:
            break
        node.turn(0.01)
    driver.connection.close()  # its command was killed while it started
    program(monkeypatch, "import time; print('port 77', flush=True); time.sleep(60)")
    for _ in range(1000):
        if not node._host_processes:
            break
        node.turn(0.01)
    assert call().ask(order("again", 4)) == HostStarted("again", 77)


def test_a_host_process_that_was_told_of_stays_when_the_line_to_the_node_is_gone(node, call, monkeypatch):
    program(monkeypatch, "import time; print('port 77', flush=True); time.sleep(60)")
    driver = call()
    assert driver.ask(order("entered", 4)) == HostStarted("entered", 77)
    driver.connection.close()
    for _ in range(50):
        node.turn(0.01)
    assert len(node._host_processes) == 1


def test_a_demand_of_who_has_no_run_here_changes_nothing(node, call):
    stranger = call()
    stranger.connection.send(SlotDemand(0, 9, 9, 9))
    assert isinstance(stranger.ask(ClockRequest(1)), ClockReply)
    assert node._host_processes.pool.free == 4


def test_of_two_members_with_one_name_the_first_stands_and_nobody_is_told_for_ever(node, call):
    other = call(hello("b", "10.0.0.2:7420"))
    assert isinstance(other.said[0], Welcome)
    other.ask(Nodes((Member("x", "10.0.0.8:1"),), False))
    other.said.clear()
    other.connection.send(Nodes((Member("x", "10.0.0.9:1"), Member("a", "10.0.0.9:1")), False))
    assert isinstance(other.ask(ClockRequest(1)), ClockReply)
    assert [each for each in other.said if isinstance(each, Nodes)] == []


def test_who_does_not_fit_is_told_and_hung_up_on_at_once(node, call, caplog):
    peer = call(Hello(1, "0.0", "2.7"))
    assert "install the same on both" in peer.said[0].text
    assert not node._callers


def test_a_node_that_was_let_in_once_is_not_ended_by_a_later_refusal(node, key):
    """Its runs would end with it."""
    member = Node("127.0.0.1:0", key, 1, name="b", join=node.address)
    try:
        member._has_joined = True
        node._members["b"] = Member("b", "10.0.0.2:7420")  # whom it joins knows another one of its name by now
        member._join_at = 0.0
        stop = threading.Event()
        server = threading.Thread(target=lambda: [node.turn(0.01) for _ in iter(stop.is_set, True)])
        server.start()
        try:
            member.turn(0)
        finally:
            stop.set()
            server.join()
        assert member._joined is None
    finally:
        member.close()


@pytest.mark.slow
def test_code_that_somebody_left_in_the_nodes_folder_is_not_run(tmp_path):
    for name in ("secrets", "logging", "esault", "dataclasses"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'planted')!r}, 'w')")
    missing = [str(tmp_path / "order"), "a", "127.0.0.1", str(os.getpid()), installed()]
    done = subprocess.run([*host_processes._PROGRAM, *missing], cwd=tmp_path, capture_output=True, text=True)
    assert "main" in done.stderr  # it came as far as the order, which is not there
    assert not (tmp_path / "planted").exists()


def test_a_node_that_has_hung_up_may_come_back_at_another_address(node, call):
    """As a pod does, or a machine that has started anew."""
    first = call(hello("b", "10.0.0.2:7420"))
    assert "already, at 10.0.0.2:7420" in call(hello("b", "10.0.0.9:7420")).said[0].text
    first.connection.close()
    for _ in range(1000):
        node.turn(0.01)
        if "b" in node._gone:
            break
    driver = call()
    again = call(hello("b", "10.0.0.9:7420"))
    assert isinstance(again.said[0], Welcome)
    while not isinstance(news := driver.hear(), Nodes):
        pass
    assert Member("b", "10.0.0.9:7420") in news.members
    assert "already, at 10.0.0.9:7420" in call(hello("b", "10.0.0.2:7420")).said[0].text
