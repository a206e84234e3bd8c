"""Probes through the data path: behind what was read before them, answered twice."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.worker.key_load import KEPT, PER_PROBE, KeyLoadSampler
from esault.flow.worker.prober import Prober
from esault.flow.worker.probes import Probes
from esault.messages.probe import Counters
from esault.payload.codec import Codec
from esault.routing.ring import position
from esault.testing.memory_wire import MemoryWire


def seats():
    """A prober, and probes of sub-unit 7 behind an inlet."""
    wire = MemoryWire()
    data, answers = wire.bind("memory://7/data"), wire.bind("memory://probes")
    prober = Prober(wire, 1)
    prober.targets({7: ("memory://7/data", 0.1)}, 1)
    counted = Counters(5.0, 10, 4, 3, 0.5, 6, 0.25)
    probes = Probes(7, 1, "memory://probes", wire, Codec(), lambda: counted)
    return prober, probes, data, answers


def frames(inlet):
    return [link.popleft() for link in inlet.waiting() for _ in range(len(link))]


def read(probes, data, ticket):
    from esault.flow.channel.frame import decode

    for frame in frames(data):
        probes.read(decode(frame, Codec()), ticket)


def test_a_probe_comes_back_when_what_was_read_before_it_is_done():
    prober, probes, data, answers = seats()
    (sent,) = prober.send(1.0)
    assert (sent.incarnation, sent.number, sent.sent) == (7, 1, 1.0)
    read(probes, data, ticket=12)
    seen = prober.read(frames(answers)[0], 1.01)
    assert (seen.seen, seen.back) == (1.01, None)
    assert seen.counters.backlog == 6
    probes.through(11, False)
    assert frames(answers) == []
    probes.through(12, False)
    back = prober.read(frames(answers)[0], 1.5)
    assert (back.number, back.sent, back.seen, back.back) == (1, 1.0, None, 1.5)
    assert back.counters == Counters(5.0, 10, 4, 3, 0.5, 6, 0.25)


def test_an_empty_inbox_lets_all_through():
    prober, probes, data, answers = seats()
    prober.send(1.0)
    read(probes, data, ticket=99)
    frames(answers)
    probes.through(0, True)
    assert prober.read(frames(answers)[0], 1.2).back == 1.2
    assert not probes.waiting


def test_probes_are_sent_by_period_and_missed_ones_are_not_made_up_for():
    prober, *_ = seats()
    assert [len(prober.send(t)) for t in (1.0, 1.05, 1.1, 1.15)] == [1, 0, 1, 0]
    assert len(prober.send(9.0)) == 1
    assert len(prober.send(9.01)) == 0
    prober.targets({}, 1)
    assert prober.send(10.0) == []
    assert prober.next_at() is None


def test_answers_of_strangers_are_counted_and_dropped():
    prober, *_ = seats()
    codec = Codec()
    good = (1.0, True, tuple(Counters(1.0, 1, 1, 1, 0.1, 0, 0.0, 3)))
    for frame in (
        b"garbage",
        codec.pack((6, 1, 7, 1, None)),
        codec.pack((6, 1, 7, 1, (1.0, True, (1, 2)))),
        codec.pack((6, 1, 8, 1, good)),  # nobody probes 8
        codec.pack((6, 2, 7, 1, good)),  # another epoch
        codec.pack((6, 1, 7, 1, ("now", True, good[2]))),
    ):
        assert prober.read(frame, 2.0) is None
    assert prober.dropped == 6
    assert prober.read(codec.pack((6, 1, 7, 1, good)), 2.0) is not None


def test_the_sampler_looks_at_a_few_tuples_after_each_probe():
    sampler = KeyLoadSampler()
    assert sampler.room == 0
    sampler.refill()
    sampler.sample(["a"] * 100)
    assert sampler.room == PER_PROBE - 100
    sampler.sample(["b"] * 1000)
    assert sampler.room == 0
    load = sampler.summary()
    assert load.size == PER_PROBE
    assert load.heaviest[0][:2] == ("'b'", position("b"))
    assert abs(load.heaviest[0][2] - 156 / 256) < 1e-9
    assert set(load.points) == {position("a"), position("b")}
    sampler.forget()
    assert sampler.summary().size == 0


@given(st.integers(1, 5000), st.integers(1, 400), st.integers(0, 1 << 30))
def test_points_divide_the_sample_into_equal_parts(tuples, keys, seed):
    order = random.Random(seed)
    sampler = KeyLoadSampler()
    given_keys = [f"k{order.randrange(keys)}" for _ in range(tuples)]
    for start in range(0, tuples, PER_PROBE):
        sampler.refill()
        sampler.sample(given_keys[start : start + PER_PROBE])
    load = sampler.summary()
    places = sorted(position(k) for k in given_keys[-KEPT:])
    assert load.size == min(tuples, KEPT)
    assert list(load.points) == sorted(load.points)
    assert set(load.points) <= set(places)
    half = places[len(places) // 2]
    below = sum(p < half for p in load.points)
    assert below <= len(load.points) / 2 + 1
