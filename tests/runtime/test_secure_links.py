"""The data path between hosts: TLS links and inlets, and the lease, without a run around them."""

from __future__ import annotations

import random
import socket
import threading
import time

import pytest

from esault.cluster.key import ClusterKey, make_key
from esault.runtime.net.links import PREFACE, UnixLink
from esault.runtime.net.secure_inlets import MOST_STRANGERS, HostInlet
from esault.runtime.net.secure_links import Endpoint, HostWire, SecureLink
from esault.runtime.process import lease
from esault.runtime.process.lease import Lease, LeaseHolder


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return ClusterKey(make_key(tmp_path_factory.mktemp("keys") / "key"))


@pytest.fixture
def inlet(tmp_path, key):
    made = HostInlet(str(tmp_path / "1.data"), "b", "127.0.0.1", "run", key.server)
    yield made
    made.close()


@pytest.fixture
def wire(key):
    made = HostWire("a", key.client)
    yield made
    made.close()


def carry(inlet, wire, link, frames, seconds=20.0, while_=lambda: True):
    """Send these frames, as a data loop would; what has arrived when all have, or the time is over."""
    got, waiting, end = [], list(frames), time.monotonic() + seconds
    while time.monotonic() < end and (waiting or len(got) < len(frames)) and while_():
        while waiting and link.send(waiting[0]):
            del waiting[0]
        inlet.read(lambda frame: got.append(bytes(frame)))
        wire.retry()
    return got


def test_frames_of_all_sizes_arrive_whole_and_in_order(inlet, wire):
    link = wire.link(inlet.endpoint)
    assert isinstance(link, SecureLink)
    order = random.Random(1)
    sizes = [0, 1, 5, 100, 16383, 16384, 65535, 65536, 511 << 10, (512 << 10) + 1, 3 << 20]
    frames = [order.randbytes(size) for size in [*sizes, *(order.randrange(70_000) for _ in range(200))]]
    assert carry(inlet, wire, link, frames) == frames
    assert wire.traffic()["b"] > sum(map(len, frames))


def test_who_is_on_the_same_host_takes_the_socket_of_unix(inlet, key):
    wire = HostWire("b", key.client)
    try:
        link = wire.link(inlet.endpoint)
        assert isinstance(link, UnixLink)
        assert carry(inlet, wire, link, [b"x"]) == [b"x"]
        assert wire.traffic() == {}
    finally:
        wire.close()


def test_endpoints_are_read_as_they_were_written():
    for endpoint in (
        Endpoint("b", "unix:/run/with a blank/1.data", "10.0.0.2:4000", "20260101-1/1.data"),
        Endpoint("b", "unix:/r/1.data", "[fd00::1]:4000", "r/1.data"),
    ):
        assert Endpoint.read(str(endpoint)) == endpoint


def test_nobody_there_is_tried_again_until_there_is(tmp_path, key, wire):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    link = wire.link(str(Endpoint("b", "unix:/none", f"127.0.0.1:{port}", "run/1.data")))
    for _ in range(20):
        assert not link.send(b"x")
        wire.retry()
        time.sleep(0.01)
    inlet = HostInlet(str(tmp_path / "1.data"), "b", "127.0.0.1", "run", key.server)
    try:
        inlet._poll.unregister(inlet._far)
        inlet._far.close()
        from esault.cluster.connection import listen

        inlet._far = listen("127.0.0.1", port)
        inlet._poll.register(inlet._far, 1)
        assert carry(inlet, wire, link, [b"x", b"y"]) == [b"x", b"y"]
    finally:
        inlet.close()


def test_a_connection_that_ended_while_nothing_was_sent_is_made_anew(inlet, wire):
    link = wire.link(inlet.endpoint)
    assert carry(inlet, wire, link, [b"1"]) == [b"1"]
    for later in ([b"2", b"3"], [bytes(300_000), b"4"]):
        link._socket.shutdown(socket.SHUT_RDWR)  # as a firewall does, or a peer that has found it dead
        assert carry(inlet, wire, link, later) == later


def test_another_life_of_a_port_takes_nothing(inlet, wire):
    """The port of a sub-unit that is gone may be another's: who was meant is said first."""
    there = Endpoint.read(inlet.endpoint)
    link = wire.link(str(there._replace(name="run/0.data")))
    assert carry(inlet, wire, link, [b"for somebody else"] * 3, seconds=0.5) == []
    assert carry(inlet, wire, wire.link(inlet.endpoint), [b"x"]) == [b"x"]


def test_another_key_gets_in_on_neither_side_and_is_counted(inlet, tmp_path, caplog):
    other = ClusterKey(make_key(tmp_path / "other"))
    wire = HostWire("a", other.client)
    try:
        assert carry(inlet, wire, wire.link(inlet.endpoint), [b"x"], seconds=1.0) == []
    finally:
        wire.close()
    assert inlet.strangers.count == 1
    assert "no link to run/1.data" in caplog.text
    assert "run/1.data refused 1 connection" in caplog.text
    assert "another key" in caplog.text


def test_strangers_who_say_nothing_or_nonsense_hold_up_nobody(inlet, wire):
    address, _, port = Endpoint.read(inlet.endpoint).address.rpartition(":")
    strangers = [socket.create_connection((address, int(port))) for _ in range(MOST_STRANGERS + 10)]
    try:
        for stranger in strangers[::2]:
            stranger.sendall(PREFACE + bytes(300))
        assert carry(inlet, wire, wire.link(inlet.endpoint), [b"x"]) == [b"x"]
        assert inlet.strangers.count >= 10
    finally:
        for stranger in strangers:
            stranger.close()


def test_callers_without_end_do_not_keep_a_socket_from_its_frames(inlet, wire):
    link = wire.link(inlet.endpoint)
    assert carry(inlet, wire, link, [b"x"]) == [b"x"]
    address, _, port = Endpoint.read(inlet.endpoint).address.rpartition(":")
    strangers = [socket.create_connection((address, int(port))) for _ in range(40)]
    try:
        assert link.send(b"y")
        inlet.wait(5.0)
        got = []
        assert inlet.read(got.append)  # one look: it does not begin with all of those who wait
        assert len(inlet._connections) < 40
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_receiver_that_does_not_read_holds_the_sender_up_and_loses_nothing(inlet, wire):
    link = wire.link(inlet.endpoint)
    assert carry(inlet, wire, link, [b"x"]) == [b"x"]
    frame, sent = bytes(100_000), 0
    while link.send(frame):
        sent += 1
        assert sent < 1000, "it took more than any buffer holds"
    time.sleep(4.5)  # longer than a control connection would bear: a slow bolt is no dead one
    got = []
    end = time.monotonic() + 20
    while len(got) < sent and time.monotonic() < end:
        inlet.read(lambda data: got.append(len(data)))
        wire.retry()
    assert got == [100_000] * sent
    assert link.send(b"next")


class Relay(threading.Thread):
    """Between a link and its inlet: passes bytes on in pieces of any size, late, and cuts the way after so many."""

    def __init__(self, target, seed, most):
        super().__init__(daemon=True)
        self.order, self.target, self.most = random.Random(seed), target, most
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self):
        near, _ = self.listener.accept()
        self.listener.close()
        with near, socket.create_connection(self.target) as far:
            passed = 0
            while passed < self.most:
                for source, sink in ((near, far), (far, near)):
                    source.settimeout(0.002)
                    try:
                        data = source.recv(self.order.choice((1, 7, 100, 5000, 70_000)))
                    except TimeoutError:
                        continue
                    except OSError:
                        return
                    if not data:
                        return
                    time.sleep(self.order.random() * 0.002)
                    sink.sendall(data)
                    passed += len(data)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_slow_way_that_is_cut_lets_through_is_whole_and_in_order(inlet, wire, seed):
    there = Endpoint.read(inlet.endpoint)
    host, _, port = there.address.rpartition(":")
    relay = Relay((host, int(port)), seed, 150_000)
    link = wire.link(str(there._replace(address=relay.address)))
    order = random.Random(seed)
    frames = [order.randbytes(order.choice((10, 100, 20_000))) for _ in range(100)]
    got = carry(inlet, wire, link, frames, while_=relay.is_alive)
    inlet.wait(0.2)
    inlet.read(lambda frame: got.append(bytes(frame)))
    assert 0 < len(got) < len(frames)
    assert got == frames[: len(got)]
    for _ in range(100):  # the system tells of the cut in its own time
        if not link.send(b"behind the cut"):
            break
        time.sleep(0.01)
    assert not link.send(b"behind the cut")


def test_a_lease_holds_as_long_as_the_driver_is_heard(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now[0])
    holder = LeaseHolder(str(tmp_path / "lease"))
    read = Lease(str(tmp_path / "lease"))
    assert read.holds()
    now[0] += lease.LEASE - 0.01
    assert read.holds()
    now[0] += 0.02
    assert not read.holds()
    assert holder.age() > lease.LEASE
    holder.renew()
    assert read.holds()
