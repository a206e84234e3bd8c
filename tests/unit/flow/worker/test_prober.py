"""Whom the prober sends to, and what it takes for an answer."""

from __future__ import annotations

import pytest

from esault.flow.channel.frame import GOT, PROBE, decode
from esault.flow.worker.prober import Prober
from esault.messages.probe import Counters
from esault.payload.codec import Codec
from esault.testing.memory_wire import MemoryWire

CODEC = Codec()
COUNTED = tuple(Counters(5.0, 10, 4, 3, 0.5, 6, 0.25))


def bench(targets=((7, 0.1),)):
    wire = MemoryWire()
    inlets = {i: wire.bind(f"memory://{i}") for i in (7, 8)}
    prober = Prober(wire, 3)
    prober.targets({i: (f"memory://{i}", period) for i, period in targets}, 3)
    return prober, inlets


def came(inlet):
    return [decode(link.popleft(), Codec()) for link in inlet.waiting() for _ in range(len(link))]


def answer(kind=PROBE, epoch=3, channel=7, number=2, body=(1.0, True, COUNTED)):
    return CODEC.pack((kind, epoch, channel, number, body))


def test_each_is_probed_by_its_own_period_and_its_probes_are_numbered():
    prober, inlets = bench(((7, 0.125), (8, 1.0)))
    sent = [(each.incarnation, each.number) for now in (1.0, 1.125, 1.25, 2.0) for each in prober.send(now)]
    assert sent == [(7, 1), (8, 1), (7, 2), (7, 3), (7, 4), (8, 2)]
    assert [(frame.kind, frame.epoch, frame.channel, frame.seq, frame.body) for frame in came(inlets[8])] == [
        (PROBE, 3, 0, 1, 1.0),
        (PROBE, 3, 0, 2, 2.0),
    ]
    assert prober.next_at() == pytest.approx(2.0625)  # 7 was late: missed ones are not made up for
    assert prober.send(2.04) == []


def test_one_that_is_late_comes_back_to_its_period():
    prober, _ = bench(((7, 1.0),))
    prober.send(10.0)
    prober.send(11.2)
    assert prober.next_at() == 12.0
    prober.send(14.0)
    assert prober.next_at() == 14.5


def test_one_that_is_gone_is_forgotten_and_one_that_stays_goes_on():
    prober, inlets = bench(((7, 0.1), (8, 1.0)))
    assert prober.next_at() == 0.0
    prober.send(1.0)
    prober.targets({7: ("memory://7", 5.0)}, 4)
    assert [each.incarnation for each in prober.send(9.0)] == [7]
    assert [frame.epoch for frame in came(inlets[7])] == [3, 4]
    assert prober.next_at() == 11.5  # by the new period
    prober.targets({8: ("memory://8", 1.0)}, 4)
    assert [(each.incarnation, each.number) for each in prober.send(9.1)] == [(8, 1)]
    prober.close()
    assert prober.next_at() is None
    assert prober.send(99.0) == []


def test_an_answer_says_when_it_was_seen_or_that_it_came_through():
    prober, _ = bench()
    through = prober.read(answer(), 1.5)
    assert (through.incarnation, through.number, through.sent, through.seen, through.back) == (7, 2, 1.0, None, 1.5)
    assert through.counters == Counters(*COUNTED)
    seen = prober.read(answer(body=(1.0, False, COUNTED)), 1.25)
    assert (seen.seen, seen.back) == (1.25, None)
    assert prober.dropped == 0


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        answer(kind=GOT),
        answer(epoch=2),
        answer(channel=8),
        answer(body=(1, True, COUNTED)),
        answer(body=(1.0, True)),
        answer(body=None),
        answer(body=(1.0, True, (5.0, *COUNTED[1:3], "x", *COUNTED[4:]))),
        answer(body=(1.0, True, (5, *COUNTED[1:]))),
        answer(body=(1.0, True, (*COUNTED[:6], 1))),
        answer(body=(1.0, True, (*COUNTED[:7], "x"))),
    ],
)
def test_what_is_none_of_this_run_is_counted_and_dropped(data):
    prober, _ = bench()
    assert prober.read(data, 2.0) is None
    assert prober.dropped == 1
