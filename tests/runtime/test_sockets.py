"""What the data path counts on when a sender goes: real sockets, no run around them."""

from __future__ import annotations

import pytest
import zmq

from esault.runtime.sockets import Inlets, ZmqWire

FRAMES = 60


@pytest.fixture
def contexts():
    made = [zmq.Context(1), zmq.Context(1)]
    yield made
    for context in made:
        context.destroy(linger=0)


def _send(link, frame):
    while not link.send(frame):
        pass


def test_what_was_sent_to_an_express_socket_arrives_though_the_sender_goes_before_it_is_read(contexts, tmp_path):
    inlets = Inlets(contexts[0], str(tmp_path), 1)
    link = ZmqWire(contexts[1]).link(inlets.express_endpoint)
    for number in range(FRAMES):  # nobody reads meanwhile, and none is refused for good
        _send(link, bytes([number]) * 3000)
    link.finish()
    got = []
    while len(got) < FRAMES and inlets.express.poll(5000):
        inlets.read(inlets.express, lambda frame: got.append(frame[0]), lambda: True)
    assert got == list(range(FRAMES))
    inlets.close()


def test_a_data_socket_that_nobody_reads_refuses_what_comes(contexts, tmp_path):
    inlets = Inlets(contexts[0], str(tmp_path), 1)
    link = ZmqWire(contexts[1]).link(inlets.endpoint)
    sent = sum(link.send(bytes(1 << 20)) for _ in range(1000))
    assert sent < 1000
    link.close()
    inlets.close()
