"""An ack server by itself: frames of roots and acks go in, marks for the roots' owners come out."""

from __future__ import annotations

from esault.flow.channel.frame import ACK, MARK, REGISTER, decode
from esault.flow.delivery.ack_server import AckServer
from esault.flow.delivery.ledger import DONE, PROCESSED
from esault.flow.delivery.roots import STALLED
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.testing.memory_wire import MemoryWire

SERVER, OWNER, NOW = 20, 3, 1000.0
ROOT = (OWNER, 1, 0)


class Bench:
    def __init__(self):
        self.wire, self.codec, self.seq = MemoryWire(), Codec(), 0
        self.owner = self.wire.bind("memory://owner")
        self.server = AckServer(SERVER, 1, Settings(), self.wire)
        self.server.owners({OWNER: "memory://owner"})

    def frame(self, kind, *body, epoch=1, seq=None):
        self.seq += 1
        self.server.read(self.codec.pack((kind, epoch, 9, seq or self.seq, body)), NOW)

    def marks(self):
        """Marks that came to the owner since the last call."""
        found = []
        for link in self.owner.waiting():
            while link:
                frame = decode(link.popleft(), self.codec)
                assert frame.kind == MARK
                found += frame.body
        return found


def test_a_root_is_done_when_what_was_sent_for_it_was_acked():
    bench = Bench()
    bench.frame(REGISTER, (ROOT, 5, 6))
    bench.server.send()
    assert bench.marks() == []
    bench.frame(ACK, (ROOT, 5, 0))
    bench.frame(ACK, (ROOT, 0, 6))
    bench.server.send()
    flags = 0
    for root, more in bench.marks():
        assert root == ROOT
        flags |= more
    assert flags == PROCESSED | DONE
    assert bench.server.counts() == {"open": 0, "dropped_frames": 0}


def test_what_cannot_be_read_comes_twice_or_is_of_another_time_is_counted_and_dropped():
    bench = Bench()
    bench.server.read(b"\xc1", NOW)
    bench.frame(ACK, (ROOT, 1, 1), epoch=2)
    bench.frame(MARK, (ROOT, 1))
    bench.frame(REGISTER, (ROOT, 5, 6), seq=9)
    bench.frame(REGISTER, (ROOT, 5, 6), seq=9)
    assert bench.server.counts() == {"open": 1, "dropped_frames": 4}


def test_a_root_that_makes_no_progress_is_told_of_until_its_next_attempt_comes():
    bench = Bench()
    bench.frame(REGISTER, (ROOT, 5, 6))
    late = NOW + Settings().replay_after + 1
    bench.server.watch(late)
    assert bench.marks() == [(ROOT, STALLED)]
    bench.server.watch(late + 0.1)
    assert bench.marks() == []
    bench.frame(REGISTER, ((OWNER, 1, 1), 7, 8))
    assert bench.server.counts()["open"] == 1


def test_roots_of_an_owner_that_is_gone_are_forgotten_and_one_that_is_not_known_yet_is_told_later():
    bench = Bench()
    young = (OWNER + 1, 1, 0)
    for root in (ROOT, young):
        bench.frame(REGISTER, (root, 5, 6))
        bench.frame(ACK, (root, 5, 6))
    bench.server.send()
    assert {root for root, _ in bench.marks()} == {ROOT}
    bench.server.owners({OWNER + 1: "memory://owner"})
    bench.server.send()
    assert {root for root, _ in bench.marks()} == {young}
    bench.frame(REGISTER, ((OWNER + 1, 2, 0), 5, 6))
    bench.server.owners({})
    bench.server.send()
    assert bench.server.retry()
    assert bench.server.counts()["open"] == 0
