from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import struct
import time

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources import tcp_lines
from esault.sources.tcp_lines import TcpLines
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, has_position


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(clock):
    spouts = []

    def make(*arguments, **options):
        spout = TcpLines(*arguments, **options)
        spout.check()
        spouts.append(spout)
        spout.open(Context("lines", now=clock, logger=logging.getLogger("test.tcp_lines")))
        return spout

    yield make
    for spout in spouts:
        spout.close()


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        yield listening


def until(spout, count, limit=100):
    """So many rows; the loopback network takes its time, a little."""
    rows, deadline = [], time.monotonic() + 5
    while len(rows) < count:
        rows += spout.read(limit)
        assert time.monotonic() < deadline, f"only {rows} came"
    return rows


def until_true(spout, condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert spout.read(100) == []
        assert time.monotonic() < deadline


def test_lines_of_a_server_come_with_its_address(opened, server):
    port = server.getsockname()[1]
    spout = opened("127.0.0.1", port)
    peer, _ = server.accept()
    assert spout.read(10) == []
    with peer:
        peer.sendall(b"one\r\ntw")
        assert until(spout, 1) == [(f"127.0.0.1:{port}", "one")]
        peer.sendall(b"o\n\n")
        assert until(spout, 2) == [(f"127.0.0.1:{port}", "two"), (f"127.0.0.1:{port}", "")]


def test_without_reconnect_the_end_of_the_connection_is_the_end_of_the_stream(opened, server):
    spout = opened("localhost", server.getsockname()[1], reconnect=False)
    peer, _ = server.accept()
    peer.sendall(b"one\ntwo")
    peer.close()
    assert [line for _, line in until(spout, 2, limit=1)] == ["one", "two"]
    for _ in range(2):
        with pytest.raises(EndOfStream):
            spout.read(1)


def test_a_lost_connection_is_made_again_less_and_less_often(opened, server, clock, caplog):
    host, port = server.getsockname()
    spout = opened(host, port)
    peer, _ = server.accept()
    peer.sendall(b"one\n")
    until(spout, 1)
    server.close()
    peer.close()
    until_true(spout, lambda: spout._next_attempt is not None)
    start, attempts = clock.now, []
    while clock.now < start + 20:
        before = spout._next_attempt
        clock.now += 0.05
        assert spout.read(100) == []
        # refused at once on the loopback; the answer may take a turn
        until_true(spout, lambda: spout._attempt is None)
        if spout._next_attempt != before:
            attempts.append(clock.now - start)
    gaps = [b - a for a, b in zip([0.0, *attempts], attempts, strict=False)]
    assert gaps[:6] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2], abs=0.06)
    assert gaps[6:] == pytest.approx([5.0] * len(gaps[6:]), abs=0.06)
    assert len(gaps) > 6
    with socket.create_server((host, port)) as again:
        clock.now += 5.1
        again.settimeout(5)
        until_true(spout, lambda: spout._connections)
        peer, _ = again.accept()
        with peer:
            peer.sendall(b"two\n")
            assert [line for _, line in until(spout, 1)] == ["two"]
    address = f"127.0.0.1:{port}"
    assert caplog.messages == [f"{address}: the connection is gone; connecting again", f"{address}: connected again"]


def test_clients_send_lines_to_a_listening_spout(opened):
    spout = opened("127.0.0.1", 0, listen=True)
    first, second = socket.create_connection(spout.address), socket.create_connection(spout.address)
    with first, second:
        first.sendall(b"a\nb")
        second.sendall(b"x\n")
        rows = until(spout, 2)
        assert sorted(line for _, line in rows) == ["a", "x"]
        name = "{}:{}".format(*first.getsockname())
        assert (name, "a") in rows
    # the client has ended: what it began is a line; the spout goes on
    assert until(spout, 1) == [(name, "b")]
    with socket.create_connection(spout.address) as third:
        third.sendall(b"c\n")
        assert [line for _, line in until(spout, 1)] == ["c"]


def test_a_line_that_a_reset_cut_off_is_no_line(opened):
    spout = opened("127.0.0.1", 0, listen=True)
    client = socket.create_connection(spout.address)
    client.sendall(b"whole\nhal")
    assert [line for _, line in until(spout, 1)] == ["whole"]
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    until_true(spout, lambda: not spout._connections)


def test_what_strangers_send_stops_nothing_unless_one_says_so(opened):
    spout = opened("127.0.0.1", 0, listen=True, max_line=10)
    with socket.create_connection(spout.address) as client:
        client.sendall(b"\xff\n" + b"x" * 50 + b"\nok\n")
        assert [line for _, line in until(spout, 2)] == ["\ufffd", "ok"]
    assert spout.counters()["long_lines_skipped"] == 1
    strict = opened("127.0.0.1", 0, listen=True, errors="strict")
    with socket.create_connection(strict.address) as client:
        client.sendall(b"\xff\n")
        with pytest.raises(SourceError, match=r"connection from 127\.0\.0\.1:\d+: byte 0 cannot be decoded as utf-8"):
            until(strict, 1)


def test_what_is_not_read_stays_with_the_sender(opened, monkeypatch):
    monkeypatch.setattr(tcp_lines, "_BUFFER", 100_000)
    spout = opened("127.0.0.1", 0, listen=True)
    with socket.create_connection(spout.address) as client:
        client.setblocking(False)
        line, sent = b"x" * 999 + b"\n", 0
        received = 0
        for _ in range(3000):
            try:
                sent += client.send(line)
            except BlockingIOError:
                break
            received += len(spout.read(1) if not received else [])
        for _ in range(100):
            received += len(spout.read(1))
        assert spout._buffered < 100_000 + 64 * 1024
        client.setblocking(True)
        client.shutdown(socket.SHUT_WR)
        assert len(until(spout, sent // 1000 - received)) == sent // 1000 - received


def test_more_clients_than_places_wait_their_turn(opened, monkeypatch):
    monkeypatch.setattr(tcp_lines, "_MOST_CONNECTIONS", 2)
    spout = opened("127.0.0.1", 0, listen=True)
    clients = [socket.create_connection(spout.address) for _ in range(4)]
    for index, client in enumerate(clients):
        client.sendall(f"{index}\n".encode())
    assert [line for _, line in until(spout, 2)] == ["0", "1"]
    assert spout.read(10) == []
    for client in clients[:2]:
        client.close()
    assert sorted(line for _, line in until(spout, 2)) == ["2", "3"]
    for client in clients[2:]:
        client.close()


def test_who_takes_a_place_and_brings_nothing_goes_when_others_wait(opened, monkeypatch, clock, caplog):
    monkeypatch.setattr(tcp_lines, "_MOST_CONNECTIONS", 3)
    spout = opened("127.0.0.1", 0, listen=True)
    useful = socket.create_connection(spout.address)
    useful.sendall(b"first\n")
    assert [line for _, line in until(spout, 1)] == ["first"]
    strangers = [socket.create_connection(spout.address) for _ in range(5)]
    until_true(spout, lambda: len(spout._connections) == 3)
    late = socket.create_connection(spout.address)
    late.sendall(b"late\n")
    for _ in range(20):
        assert spout.read(10) == []  # strangers have their time, as anybody
    rows, deadline = [], time.monotonic() + 20
    while not rows:
        clock.now += tcp_lines._SILENT
        rows += spout.read(10)
        assert time.monotonic() < deadline
    assert [line for _, line in rows] == ["late"]
    useful.sendall(b"second\n")  # it was silent for longer than any of them, and has brought something
    assert [line for _, line in until(spout, 1)] == ["second"]
    assert len([record for record in caplog.records if "places are taken" in record.message]) == 1
    for client in (useful, late, *strangers):
        client.close()


def test_no_descriptors_for_a_while_end_nothing(opened, monkeypatch, clock, caplog):
    spout = opened("127.0.0.1", 0, listen=True)
    accept, left = socket.socket.accept, [2]

    def failing(self):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    with socket.create_connection(spout.address) as client:
        client.sendall(b"line\n")
        rows, deadline = [], time.monotonic() + 20
        while not rows:
            clock.now += tcp_lines._LOOK_EVERY
            rows += spout.read(10)
            assert time.monotonic() < deadline
    assert [line for _, line in rows] == ["line"]
    assert "Too many open files" in caplog.text


def test_a_server_that_does_not_answer_is_given_up_and_tried_again(opened, server, clock, caplog):
    spout = opened(*server.getsockname())
    peer, _ = server.accept()
    peer.close()
    until_true(spout, lambda: spout._next_attempt is not None)
    again = socket.socket()  # stands for an attempt to which nobody has answered
    spout._attempt, spout._attempted, spout._next_attempt = again, clock.now, None
    spout._selecting.register(again, selectors.EVENT_WRITE)
    clock.now += tcp_lines._PATIENCE + 1
    assert spout.read(10) == []
    assert again.fileno() == -1
    clock.now += tcp_lines._LONGEST_BACKOFF
    until_true(spout, lambda: spout._connections)
    peer, _ = server.accept()
    with peer:
        peer.sendall(b"two\n")
        assert [line for _, line in until(spout, 1)] == ["two"]


def test_a_network_that_is_not_there_is_tried_again(opened, server, clock, monkeypatch):
    spout = opened(*server.getsockname())
    server.accept()[0].close()
    until_true(spout, lambda: spout._next_attempt is not None)
    monkeypatch.setattr(socket.socket, "connect_ex", lambda self, address: errno.ENETUNREACH)
    before, clock.now = spout._backoff, clock.now + 1
    assert spout.read(10) == []
    assert (spout._attempt, spout._backoff) == (None, 2 * before)
    assert spout._next_attempt == clock.now + before


def test_a_stop_closes_a_listener_that_has_no_room_and_leaves_out_what_comes_on(opened, monkeypatch, caplog):
    monkeypatch.setattr(tcp_lines, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(tcp_lines, "_LAST_BYTES", 1)
    spout = opened("127.0.0.1", 0, listen=True)
    with socket.create_connection(spout.address) as client, socket.create_connection(spout.address):
        client.sendall(b"one\n")
        assert [line for _, line in until(spout, 1)] == ["one"]
        client.sendall(b"two\nhalf")
        spout.halt()
        assert [line for _, line in until(spout, 1)] == ["two"]
        with pytest.raises(EndOfStream):
            spout.read(1)
    assert any("a peer sends on while the run stops" in text for text in caplog.messages)


def test_a_refused_connection_is_said_with_the_remedy(server, opened):
    port = server.getsockname()[1]
    server.close()
    TcpLines("127.0.0.1", port).check()  # connecting would use up a server that serves once
    with pytest.raises(
        SourceError, match=rf"127\.0\.0\.1:{port}: cannot connect \(Connection refused\); start what sends"
    ):
        opened("127.0.0.1", port)


def test_a_taken_port_is_found_by_check(server):
    with pytest.raises(
        SourceError, match=r"cannot listen .*Address already in use.*; another process listens there: end it"
    ):
        TcpLines("127.0.0.1", server.getsockname()[1], listen=True).check()


def test_an_address_of_another_machine_and_an_unknown_host_are_named():
    with pytest.raises(SourceError, match="this machine has no such address: write one it has"):
        TcpLines("192.0.2.1", 0, listen=True).check()
    with pytest.raises(SourceError, match=r"no\.such\.host\.invalid:80: the host is not known \(.*\); check its name"):
        TcpLines("no.such.host.invalid", 80).check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 80), "TcpLines: host='': write a name or an address"),
        (("x", 0), "TcpLines: port=0: write a number from 1 to 65535"),
        (("x", "80"), "TcpLines: port='80': write a number"),
        (("x", 70000), "TcpLines: port=70000: write a number"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, message):
    with pytest.raises(TopologyError, match=message):
        TcpLines(*arguments)
    with pytest.raises(TopologyError, match="TcpLines: errors='x'"):
        TcpLines("x", 80, errors="x")


def test_it_has_no_position_and_must_be_opened():
    spout = TcpLines("x", 80)
    assert not has_position(spout)
    with pytest.raises(SourceError, match=r"open\(context\) comes before read"):
        spout.read(1)
    assert spout.address == ("x", 80)


def test_an_orderly_stop_gives_all_that_peers_know_to_have_come(opened, caplog):
    spout = opened("127.0.0.1", 0, listen=True)
    first = socket.create_connection(spout.address)
    first.sendall(b"".join(b"%d\n" % i for i in range(1000)))
    rows = until(spout, 10, limit=10)
    first.sendall(b"last\nhalf")
    with socket.create_connection(spout.address) as second:  # which nothing has been read of, nor accepted
        second.sendall(b"other\n")
        time.sleep(0.05)
        assert spout.halt() is None
    with pytest.raises(OSError, match=r"."):
        socket.create_connection(spout.address, timeout=1)
    while True:
        try:
            rows += spout.read(7)
        except EndOfStream:
            break
    first.close()
    assert sorted(line for _, line in rows) == sorted([*map(str, range(1000)), "last", "other"])
    assert any("4 bytes of lines that peers had not finished are left out" in text for text in caplog.messages)
