"""`clear_state`: the state of a key is forgotten, and its next tuple begins anew, wherever keys go and whoever dies."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

import pytest
from counting import Landed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from test_checkpoints import walk

from esault import BatchBolt, Bolt, Topology, TopologyError, TopologyFailed, by_key, partial_key, shuffle, single, skip
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

CODEC = Codec()


class Trip(NamedTuple):
    """One tuple of a trip, which `last` ends."""

    n: int
    last: bool


class Trips(Bolt):
    """What came between the ends of a key's trips."""

    def __init__(self):
        self.rows = []

    def process(self, key, value):
        self.rows.append(value.n)
        if value.last:
            self.emit(key, tuple(self.rows))
            self.clear_state()


class Asked(Trips):
    """The same by calls that wait."""

    async def process(self, key, value):
        await asyncio.sleep(0.001)
        super().process(key, value)


class Timed(Trips):
    """The same, which a timer of the key would do as well, much later."""

    def process(self, key, value):
        self.timer("late", self.context.now() + 1e6, by="processing")
        super().process(key, value)

    def on_timer(self, name, at):
        raise AssertionError("a timer outlived its state")


def rows_of(seed, count=700, keys=80):
    order = random.Random(seed)
    return [(f"k{order.randrange(n // 8, n // 8 + keys)}", Trip(n, order.random() < 0.4)) for n in range(count)]


def trips_of(rows):
    """Return what the trips of these rows are, by key, and the keys whose last one has no end."""
    trips, open_trips = {}, {}
    for key, row in rows:
        open_trips.setdefault(key, []).append(row.n)
        if row.last:
            trips.setdefault(key, []).append(tuple(open_trips.pop(key)))
    return trips, set(open_trips)


def topology(rows, bolt=Trips, **options):
    t = Topology("trips")
    t.spout("rows", Slowly(rows, each=15)).bolt("count", bolt, grouping=by_key(), **options).sink("out", Landed())
    return t


def landed(local):
    found = {}
    for row in local.landed("out"):
        found.setdefault(row.key, []).append(row.value)
    return found


OPTIONS = [
    {},
    {"keys_in_memory": 20},
    {"idle_after": 0.02},
    {"parallelism": 3},
    {"on_error": skip()},
    {"bolt": Timed},
    {"bolt": Asked},
]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 30), options=st.sampled_from(OPTIONS), kills=st.sampled_from([0, 3]))
def test_each_tuple_is_in_one_trip_whatever_happens_meanwhile(seed, options, kills):
    rows = rows_of(seed)
    local = LocalRuntime(topology(rows, **options), seed=seed, settings=Settings(delivery="eo", max_pending=4))
    walk(local, random.Random(seed), kills=kills, rate=0.2, kill_rate=0.01)
    assert landed(local) == trips_of(rows)[0]


@pytest.mark.parametrize("bolt", [Trips, Asked, Timed])
def check_cuts(local, rows):
    """Each checkpoint holds the trips that had begun and not ended, and nothing of others."""
    for kept in local.kept:
        found, (_, read) = {}, CODEC.unpack(kept.units["rows"].positions[0])
        for chain in kept.units["count"].chains:
            items = {}
            for piece in chain:
                items.update(local.state_store.read(piece))
            found.update((key, state) for key, state in items.items() if key and state)
        assert found.keys() == trips_of(rows[:read])[1], kept.number


@pytest.mark.parametrize("bolt", [Trips, Asked, Timed])
def test_what_was_cleared_is_in_no_checkpoint(bolt):
    rows = rows_of(1, 1500)
    local = LocalRuntime(topology(rows, bolt), settings=Settings(delivery="eo", checkpoint_every=0.01, max_pending=4))
    local.run_until_drained()
    assert landed(local) == trips_of(rows)[0]
    assert len(local.kept) > 3
    check_cuts(local, rows)


class Client:
    """What an object has to close."""

    closed: list[str] = []

    def close(self):
        Client.closed.append("client")


class Connected(Trips):
    """It uses its client behind `clear_state`, which it says twice."""

    def open(self, context):
        self.client = Client()

    def process(self, key, value):
        Client.closed.clear()  # that of an object that was tried
        super().process(key, value)
        if value.last:
            assert not Client.closed
            self.clear_state()
            self.emit(key, "over")

    def close(self):
        self.client.close()


def test_an_object_is_closed_once_when_its_call_is_over():
    local = LocalRuntime(topology([("a", Trip(0, True))], Connected))
    local.run_until_drained()
    assert local.emitted("count") == [("a", (0,)), ("a", "over")]
    assert Client.closed == ["client"]


class Finished(Trips):
    """Forgets its key when that expires, though it would be forgotten anyway."""

    def __init__(self):
        super().__init__()
        Client.closed.clear()

    def process(self, key, value):
        self.rows.append(value.n)

    def finish(self):
        self.emit(self.key, tuple(self.rows))
        self.clear_state()

    def close(self):
        Client.closed.append("object")


@pytest.mark.parametrize("more", [{}, {"expire_after": 0.01}])
def test_finish_may_clear_too(more):
    rows = [("a", Trip(n, False)) for n in range(20)]
    local = LocalRuntime(topology(rows, Finished, **more))
    local.run_until_drained()
    assert local.emitted("count") == [("a", tuple(range(20)))]
    assert Client.closed == ["object"]


class OnTimer(Bolt):
    """Clears at a timer, which another one follows that then is no more."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.timer("first", self.context.now() + 0.1, by="processing")
        self.timer("second", self.context.now() + 0.2, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, (name, self.n))
        self.clear_state()


def test_its_timers_go_with_a_state():
    local = LocalRuntime(topology([], OnTimer), spouts={"rows": Paced(Items([("a", 1), ("b", 1), ("b", 1)]), rate=1)})
    local.run_until_drained()
    assert local.emitted("count") == [(key, ("first", 1)) for key in "abb"]


class Behind(Bolt):
    """Sets a timer of what is no more."""

    def process(self, key, value):
        self.clear_state()
        self.timer("late", 0, by="processing")

    def on_timer(self, name, at):
        pass


def test_a_timer_behind_it_is_refused_by_name():
    local = LocalRuntime(topology([("a", 1)], Behind))
    with pytest.raises(TopologyFailed, match=r"Behind\.timer works in process, .* and not behind clear_state"):
        local.run_until_drained()


class Early(Trips):
    """Clears where there is nothing yet."""

    def open(self, context):
        self.clear_state()


def test_where_no_tuple_is_processed_it_is_refused_by_name():
    local = LocalRuntime(topology([("a", Trip(0, False))], Early))
    with pytest.raises(TopologyFailed, match=r"Early\.clear_state: it works in bolts by by_key\(\), in process"):
        local.run_until_drained()


class Own(Trips):
    """Has a method of that name, as programs of before may have."""

    def clear_state(self):
        self.rows = [-1]


def test_a_method_of_this_name_stays_the_user_s_own():
    local = LocalRuntime(topology([("a", Trip(0, True)), ("a", Trip(1, True))], Own))
    local.run_until_drained()
    assert local.emitted("count") == [("a", (0,)), ("a", (-1, 1))]


class OfBatches(BatchBolt):
    """Takes itself for a bolt with objects."""

    def process_batch(self, rows):
        self.clear_state()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("bolt", "grouping", "text"),
    [
        (Trips, shuffle(), r"shuffle\(\), whose objects stand for no key; group it by_key\(\)"),
        (Trips, single(), r"single\(\) has one object, which stays; set its attributes anew"),
        (Trips, partial_key(), r"partial_key\(\), where a key's state is in several objects"),
        (OfBatches, by_key(), r"a BatchBolt has one object for all keys; write del self.keyed\[key\]"),
    ],
)
def test_bolts_whose_objects_stand_for_no_key_are_refused(bolt, grouping, text):
    rows = Topology("refused").spout("rows", Items([]))
    with pytest.raises(TopologyError, match=rf"unit 'trip': \w+\.process\w* calls self\.clear_state\(\), and .*{text}"):
        rows.bolt("trip", bolt, grouping=grouping)


def test_windows_are_refused():
    rows = Topology("refused").spout("rows", Items([]))
    with pytest.raises(
        TopologyError, match=r"Trips\.process calls self\.clear_state\(\), and an object of a window lives until"
    ):
        rows.window("trip", Trips, TumblingWindow(10), time=lambda value: value.n)
