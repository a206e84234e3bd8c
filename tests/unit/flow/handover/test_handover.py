"""Both sides of a hand-over by themselves: what goes when, and what is released in which order."""

from __future__ import annotations

import itertools
import math
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from esault.flow.channel.frame import FETCH, GOT, ROWS, STATE, STATE_END, Batch, batch_of
from esault.flow.delivery.acks import Acks
from esault.flow.handover import state_sender as giving_module
from esault.flow.handover import unconfirmed
from esault.flow.handover.divide import DealtRows, Divider, Entry, MovedKeys, cut, divide, in_rows
from esault.flow.handover.handover import ACK_EVERY, BULK_SHARE, IDLE_SHARE, LONGEST_TURN, TURN, Handover
from esault.flow.handover.state_receiver import ASK_EVERY, SLICE, StateReceiver
from esault.flow.handover.state_sender import PATIENCE, StateSender
from esault.flow.handover.unconfirmed import AGAIN
from esault.messages.change import HandOverRanges, HoldRanges, RangesHandedOver, RangesHeld, StateInstalled
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.ring import INT_MAX
from esault.testing.manual_clock import ManualClock
from esault.testing.memory_wire import MemoryWire

OTHER, VERSION, NOW = 7, 3, 1_700_000_000.0


class Post:
    """Keeps what was sent."""

    def __init__(self):
        self.sent: list[tuple[int, Any]] = []

    def put(self, kind, body):
        self.sent.append((kind, body))

    def of(self, kind):
        return [body for sent, body in self.sent if sent == kind]


class Store(dict):
    """State by key."""

    #: keys of which a row has been processed
    here: Any = ()
    #: keys that are made from now on
    made: list[Any] | None = None

    def scan(self):
        return iter(list(self))

    def note_made(self, names):
        self.made = names
        return True

    def make(self, key):
        self[key] = b"new"
        if self.made is not None:
            self.made.append(key)

    def key_of(self, name):
        return name

    def name_of(self, key):
        return key

    def remove_state(self, name):
        return self.pop(name, None)

    def install_state(self, key, state):
        self[key] = state

    def ring_state(self, ranges):
        return None

    def install_ring_state(self, said):
        raise AssertionError("nothing was said")


def _divider(everything=True):
    ids = itertools.count(1)
    acks = Acks(1, 1, Codec(), MemoryWire(), lambda *_: None)
    return Divider(MovedKeys([(0, INT_MAX, OTHER)], everything), lambda: next(ids), acks, 1000)


def _entry(*keys, sent=0.0):
    batch = Batch((1, 1, 0), 99, 0, tuple(keys), tuple(range(len(keys))), 0.0, None)
    return Entry(sent, batch)


def _incoming(post, store=None):
    return StateReceiver(VERSION, _divider(), {OTHER: post}, Store() if store is None else store, ManualClock())


def _released(getting):
    keys = ["".join(entry.batch.keys) for entry in getting.released]
    getting.released.clear()
    return keys


def test_rows_are_held_until_the_rows_of_the_old_owner_are_here_and_then_ask_for_their_keys_together():
    post = Post()
    getting = _incoming(post)
    getting.offer(_entry("a", "b", "a"))
    assert not post.sent
    getting.rows(OTHER, [])
    getting.ask(NOW)
    (wanted,) = post.of(FETCH)
    assert (wanted[0], set(wanted[1])) == (VERSION, {"a", "b"})
    assert getting.holding == 3
    getting.state(OTHER, 1, [("a", b"1")])
    assert _released(getting) == []  # what came in one batch goes on as one
    getting.state(OTHER, 2, [("b", b"")])
    assert _released(getting) == ["aba"]
    assert [number for _, number in post.of(GOT)] == [0, 1, 2]


def test_a_row_never_passes_an_earlier_one_of_its_key():
    getting = _incoming(Post())
    getting.rows(OTHER, [])
    getting.offer(_entry("a", "b"))
    getting.state(OTHER, 1, [("b", b"1"), ("c", b"1")])
    getting.offer(_entry("b", "c"))  # b has its state, and still an earlier row of it waits, for a's
    assert _released(getting) == ["c"]
    getting.state(OTHER, 2, [("a", b"1")])
    assert _released(getting) == ["ab", "b"]
    assert getting.holding == 0
    getting.offer(_entry("b", "a"))
    assert _released(getting) == ["ba"]


def _some_incoming(store):
    """One that gets some keys and has others, so that each key's place would be looked at."""
    return StateReceiver(VERSION, _divider(everything=False), {OTHER: Post()}, store, ManualClock())


def test_a_key_that_is_at_work_here_needs_no_look_at_its_place_and_never_passes_an_earlier_row():
    store = Store()
    store.here = {"a", "own"}
    getting = _some_incoming(store)
    assert getting.offer(_entry("a")) is None  # the carried rows of the old owner have not come
    getting.rows(OTHER, [])
    getting.state(OTHER, 1, [("a", b"1")])
    assert getting.offer(_entry("a")) is None  # the first one has been released, and stands in no inbox yet
    assert _released(getting) == ["a", "a"]
    assert getting.offer(_entry("own", "a")).batch.keys == ("own", "a")
    assert getting.offer(_entry("a", "b")).batch.keys == ("a",)
    getting.state(OTHER, 2, [("b", b"1")])
    assert _released(getting) == ["b"]
    getting.offer(_entry("c"))
    getting.offer(_entry("d", "c"))
    getting.state(OTHER, 3, [("c", b"1")])
    assert _released(getting) == ["c"]
    store.here |= {"c"}  # its first row has been processed; the second one waits with d
    assert getting.offer(_entry("c", "own")).batch.keys == ("own",)
    getting.state(OTHER, 4, [("d", b"")])
    assert _released(getting) == ["dc", "c"]


def test_a_key_is_asked_for_once():
    post = Post()
    getting = _incoming(post)
    getting.rows(OTHER, [])
    for i in range(3):
        getting.offer(_entry("a", "b"))
        getting.ask(NOW + i)
    assert len(post.of(FETCH)) == 1


def test_keys_that_come_a_moment_apart_are_asked_for_together():
    post = Post()
    getting = _incoming(post)
    getting.rows(OTHER, [])
    assert getting.ask_at is None
    getting.offer(_entry("a"))
    getting.ask(NOW)
    for name in "bcd":
        getting.offer(_entry(name))
        getting.ask(NOW + ASK_EVERY / 2)
    assert [body[1] for body in post.of(FETCH)] == [("a",)]
    assert getting.ask_at == NOW + ASK_EVERY
    getting.ask(getting.ask_at)
    assert [body[1] for body in post.of(FETCH)] == [("a",), ("b", "c", "d")]
    assert getting.ask_at is None


def test_at_the_end_all_that_waits_goes_on_in_order():
    getting = _incoming(Post())
    getting.rows(OTHER, [])
    getting.offer(_entry("a", "b"))
    getting.offer(_entry("c", "a"))
    getting.end(OTHER)
    assert _released(getting) == ["ab", "ca"]
    assert getting.done


COLUMNS = [np.array(["a", "b", "a"]), pa.array(["a", "b", "a"]), ("a", "b", "a")]


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("values", [np.arange(3), pa.record_batch({"n": [0, 1, 2]})], ids=["numpy", "arrow"])
@pytest.mark.parametrize("keys", COLUMNS, ids=lambda c: type(c).__name__)
def test_arrays_stay_arrays_when_they_are_divided_and_the_ledger_sees_what_became_of_them(keys, values, taken):
    divider = _divider()
    for way in (
        lambda entry: divide(entry, [1, 0, 1], divider.random64, divider.acks),
        lambda entry: dict(enumerate(reversed(cut(entry, 2, divider.random64, divider.acks)))),
    ):
        divided = way(_of(keys, values, taken))
        assert {type(entry.batch.keys) for entry in divided.values()} == {type(keys)}
        assert {type(entry.batch.values) for entry in divided.values()} == {type(values)}
        assert all(entry.taken == taken for entry in divided.values())
        rows = {part: list(zip(*in_rows(entry.batch)[3:5], entry.batch.ids)) for part, entry in divided.items()}
        of = plain(values)
        assert sorted(map(str, rows[0] + rows[1])) == sorted(map(str, zip("aba", of, ("i0", "i1", "i2"))))
        assert len(rows[1]) == 2
        (p, d) = divider.acks._sums.pop((1, 1, 0))
        ids = [entry.batch.id for entry in divided.values()]
        assert d == 99 ^ ids[0] ^ ids[1]
        assert p == (0 if taken else d)


def _of(keys, values, taken):
    return Entry(0.0, Batch((1, 1, 0), 99, 0, keys, values, 0.0, ("i0", "i1", "i2")), taken)


@pytest.mark.parametrize("keys", COLUMNS, ids=lambda c: type(c).__name__)
def test_arrays_are_held_by_their_keys_as_rows_are(keys):
    getting = _incoming(Post())
    getting.offer(_of(keys, np.arange(3), False))
    getting.rows(OTHER, [])
    getting.state(OTHER, 1, [("a", b"1")])
    getting.offer(_of(keys, pa.array([5, 6, 7]), False))
    assert getting.released == []
    getting.state(OTHER, 2, [("b", b"")])
    assert [plain(entry.batch.values) for entry in getting.released] == [[0, 1, 2], [5, 6, 7]]


@pytest.mark.parametrize("keys", COLUMNS, ids=lambda c: type(c).__name__)
def test_carried_arrays_reach_the_new_owner_as_they_are(keys):
    post = Post()
    given = StateSender(VERSION, _divider(), {OTHER: post}, [1], Store(), ManualClock(), lambda *_: None)
    assert given.divide(_of(keys, np.arange(3), False)) is None
    given.barrier(1)
    given.advance(1.0)
    (body,) = post.of(ROWS)
    ((_, raw, taken),) = Codec().unpack(Codec().pack(body))[1]
    assert taken
    batch = batch_of(raw)
    assert type(batch.keys) is type(keys)
    assert list(plain(batch.keys)) == ["a", "b", "a"]
    assert plain(batch.values) == [0, 1, 2]


def test_names_of_many_keys_are_forgotten_bit_by_bit_and_the_change_ends_with_the_last():
    getting = _incoming(Post())
    getting.rows(OTHER, [])
    getting.state(OTHER, 1, [(f"k{i}", b"1") for i in range(2 * SLICE + 1)])
    assert not getting.forget(NOW)
    getting.end(OTHER)
    assert [getting.forget(NOW - 1) for _ in range(2)] == [True, True]
    assert not getting.done
    getting.offer(_entry("k1", "new"))
    assert _released(getting) == ["k1new"]  # nothing waits meanwhile
    assert not getting.forget(NOW - 1)
    assert getting.done


@pytest.fixture
def giving():
    """Ten keys of a kilobyte each, and no sender to wait for."""
    post, store = Post(), Store({f"k{i}": bytes(1000) for i in range(10)})
    names = ((OTHER, name) for name in store.scan())
    given = StateSender(VERSION, _divider(), {OTHER: post}, [], store, ManualClock(), lambda *_: None, names=names)
    return given, post, store


def test_state_waits_for_receipts_when_much_of_it_is_on_its_way(giving, monkeypatch):
    given, post, _ = giving
    monkeypatch.setattr(unconfirmed, "UNCONFIRMED_BYTES", 2000)
    monkeypatch.setattr(giving_module, "SLICE", 2)
    assert not given.advance(0.0)  # two keys are on their way, which is enough
    assert not given.scanning
    (portion,) = post.of(STATE)
    assert len(portion[2]) == 2
    given.got(OTHER, portion[1])
    assert given.scanning
    for _ in range(4):
        given.advance(0.0)
        given.got(OTHER, post.of(STATE)[-1][1])
    assert sum(len(body[2]) for body in post.of(STATE)) == 10


def test_however_much_time_a_turn_has_it_sends_no_more_than_may_be_on_its_way(giving, monkeypatch):
    given, post, _ = giving
    monkeypatch.setattr(unconfirmed, "UNCONFIRMED_BYTES", 2000)
    monkeypatch.setattr(giving_module, "PORTION_BYTES", 500)
    monkeypatch.setattr(giving_module, "SLICE", 2)
    given.advance(60.0)
    assert not given.scanning
    assert len(post.of(STATE)) == 2


def test_what_is_asked_for_goes_at_once_and_the_rest_only_when_there_is_time(giving):
    given, post, store = giving
    given.fetch(OTHER, ("k7",))
    assert not given.advance(1.0, bulk=False)
    assert [[key for key, _ in body[2]] for body in post.of(STATE)] == [["k7"]]
    assert len(store) == 9
    assert not given.done
    given.advance(1.0)
    for body in post.of(STATE):
        given.got(OTHER, body[1])
    assert not given.done  # rows and end may be lost as well
    given.got(OTHER, 0)
    given.got(OTHER, post.of(STATE_END)[0][1] + 1)
    assert given.done and given.again_at == math.inf
    assert [kind for kind, _ in post.sent][-1] == STATE_END
    assert post.of(ROWS) == [(VERSION, ())]
    assert given.moved_keys == 10


def test_what_a_new_owner_had_asked_for_that_is_dead_is_not_sent_to_it(giving):
    given, post, store = giving
    given.replace(OTHER, OTHER + 1, post)
    given.fetch(OTHER, ("k7",))  # read behind the word of its death
    given.advance(1.0, bulk=False)
    assert (post.of(STATE), len(store)) == ([], 10)
    given.fetch(OTHER + 1, ("k7",))
    given.advance(1.0, bulk=False)
    assert [[key for key, _ in body[2]] for body in post.of(STATE)] == [["k7"]]


def test_state_of_an_old_owner_that_is_dead_is_taken_no_more_once_its_keys_begin_anew():
    store = Store()
    getting = StateReceiver(VERSION, _divider(), {OTHER: Post(), OTHER + 1: Post()}, store, ManualClock())
    getting.offer(_entry("a"))
    getting.lost(OTHER)
    assert _released(getting) == ["a"]
    store.here = {"a"}  # it has an object of its own by now
    getting.state(OTHER, 1, [("a", b"before"), ("b", b"before")])
    assert store == {}
    getting.state(OTHER + 1, 1, [("c", b"1")])
    assert store == {"c": b"1"}


def _giving(clock, post, sent):
    """An old owner of 10 000 keys, each of which takes 0.02 ms to pack; `sent` is told when acks go."""

    class Slow(Store):
        def remove_state(self, name):
            clock.advance(2e-5)
            return super().remove_state(name)

    acks: Any = SimpleNamespace(post_to=lambda incarnation, endpoint: post, send=lambda: sent.append(clock()))
    store = Slow({f"k{i}": bytes(10) for i in range(10_000)})
    changes = Handover(
        incarnation=1,
        inputs=frozenset([0]),
        to_all=frozenset(),
        store=store,
        acks=acks,
        tracked=True,
        random64=lambda: 1,
        hold_rows=1000,
        clock=clock,
        say=lambda said: None,
        fence=lambda *portion: None,
    )
    changes.hand_over(HandOverRanges(VERSION, ((0, INT_MAX, OTHER),), {OTHER: "express"}, (5,), True), deque())
    return changes, store


@pytest.mark.parametrize(("waiting", "share"), [(False, IDLE_SHARE), (True, BULK_SHARE)])
def test_state_that_nobody_asked_for_takes_more_of_the_time_where_no_tuple_waits(waiting, share):
    clock, post = ManualClock(), Post()
    changes, store = _giving(clock, post, [])
    inbox = deque([_entry("a")] if waiting else [])
    began = clock()
    while clock() < began + 0.05:
        changes.advance(inbox)
        for body in post.of(STATE):
            changes.read(SimpleNamespace(channel=OTHER, kind=GOT, body=(VERSION, body[1])))
        clock.advance_to(changes.wake_at)
    moved = 10_000 - len(store)
    assert moved * 2e-5 / (clock() - began) == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("batch", [0.001, 0.004, 0.02])
def test_state_has_its_share_of_the_time_however_long_a_batch_of_tuples_takes(batch):
    clock, post = ManualClock(), Post()
    changes, store = _giving(clock, post, [])
    inbox, began = deque([_entry("a")]), clock()
    while len(store) > 5_000:
        before = clock()
        changes.advance(inbox)
        assert clock() - before < 1.1 * LONGEST_TURN
        for body in post.of(STATE):
            changes.read(SimpleNamespace(channel=OTHER, kind=GOT, body=(VERSION, body[1])))
        clock.advance(batch)
    assert (10_000 - len(store)) * 2e-5 / (clock() - began) == pytest.approx(BULK_SHARE, rel=0.1)


def test_a_long_wait_for_receipts_makes_no_long_turn():
    clock, post = ManualClock(), Post()
    changes, store = _giving(clock, post, [])
    inbox = deque([_entry("a")])
    while changes._outgoing.scanning:
        changes.advance(inbox)
        clock.advance(0.001)
    clock.advance(1.0)
    changes.advance(inbox)  # nothing may go
    for body in post.of(STATE):
        changes.read(SimpleNamespace(channel=OTHER, kind=GOT, body=(VERSION, body[1])))
    before, here = clock(), len(store)
    changes.advance(inbox)
    assert len(store) < here
    assert clock() - before < 2 * TURN


def test_state_that_was_asked_for_goes_bit_by_bit_and_leaves_tuples_that_wait_most_of_the_time():
    clock, post = ManualClock(), Post()
    changes, store = _giving(clock, post, [])
    changes.read(SimpleNamespace(channel=OTHER, kind=FETCH, body=(VERSION, tuple(f"k{i}" for i in range(5000)))))
    began, inbox = clock(), deque([_entry("a")])
    while len(store) > 5000:
        before = clock()
        changes.advance(inbox)
        assert clock() - before < 2 * TURN  # however many keys are asked for
        clock.advance(1e-4)  # a batch of tuples
    assert 5000 * 2e-5 / (clock() - began) < 0.3
    # Where no tuple waits, all the time is theirs.
    changes, store = _giving(clock, post, [])
    changes.read(SimpleNamespace(channel=OTHER, kind=FETCH, body=(VERSION, tuple(f"k{i}" for i in range(5000)))))
    began = clock()
    while len(store) > 5000:
        assert changes.advance(deque()) or len(store) <= 5000
    assert clock() - began == pytest.approx(5000 * 2e-5, rel=0.1)


def test_state_that_is_put_off_for_tuples_that_cannot_be_processed_wakes_its_sub_unit():
    clock, post = ManualClock(), Post()
    changes, store = _giving(clock, post, [])
    changes.read(SimpleNamespace(channel=OTHER, kind=FETCH, body=(VERSION, tuple(f"k{i}" for i in range(5000)))))
    inbox = deque([_entry("a")])
    changes.advance(inbox)
    left = len(store)
    changes.advance(inbox)
    assert len(store) == left
    clock.advance_to(changes.wake_at)
    changes.advance(inbox)
    assert len(store) < left


def test_what_is_processed_while_more_waits_is_acked_once_a_millisecond():
    clock, post, sent = ManualClock(), Post(), []
    changes, _ = _giving(clock, post, sent)
    began, inbox = clock(), deque([_entry("a")])
    while clock() < began + 0.02:
        changes.advance(inbox)
        clock.advance(1e-4)
    assert 10 <= len(sent) <= 21
    assert min(b - a for a, b in itertools.pairwise(sent)) > ACK_EVERY / 2


def _sharing(clock, post, said, store=None):
    acks: Any = SimpleNamespace(post_to=lambda incarnation, endpoint: post, add=lambda *word: None, send=lambda: None)
    ids = itertools.count(1)
    return Handover(
        incarnation=1,
        inputs=frozenset([0]),
        to_all=frozenset(),
        store=Store() if store is None else store,
        acks=acks,
        tracked=True,
        random64=lambda: next(ids),
        hold_rows=1000,
        clock=clock,
        say=said.append,
        fence=lambda *portion: pytest.fail("rows that any sub-unit may have come in no order"),
        shares=True,
    )


HALF = (((INT_MAX + 1) // 2, INT_MAX, OTHER),)


def _keys(entries):
    return [key for entry in entries for key in entry.batch.keys]


def test_half_of_what_waits_is_dealt_to_a_new_sub_unit_with_no_state_and_by_no_key():
    clock, post, said = ManualClock(), Post(), []
    changes = _sharing(clock, post, said, Store({None: b"this stays"}))
    inbox = deque(_entry(None, sent=i) for i in range(8))
    inbox.append(_entry("a", "b", "c", "d"))
    changes.hand_over(HandOverRanges(VERSION, HALF, {OTHER: "express"}, (5,)), inbox)
    for _ in range(9):
        changes.advance(inbox)
    changes.offer(_entry("e", "f"), inbox)  # the sender has not switched
    changes.advance(inbox)
    stay = len(_keys(inbox))
    assert 6 <= stay <= 8 and changes.pending == 14 - stay
    assert not post.sent
    changes.barrier(5, VERSION)
    changes.advance(inbox)
    ((version, rows),) = Codec().unpack(Codec().pack(tuple(post.of(ROWS))))
    carried = [batch_of(raw) for _, raw, _ in rows]
    assert version == VERSION and sum(len(batch.keys) for batch in carried) == 14 - stay
    assert not any(taken for _, _, taken in rows)  # the window stays as it was
    assert post.of(STATE) == [] and post.of(STATE_END) == [(VERSION, 0, 0)]
    assert not changes.idle
    _confirmed(changes, inbox)
    assert changes.idle and isinstance(said[-1], RangesHandedOver)
    changes.offer(_entry("g", "h"), inbox)
    assert _keys(inbox)[-2:] == ["g", "h"]


def _confirmed(changes, inbox):
    """The new owner has the rows and the end, and there was no state."""
    for number in (0, 1):
        changes.read(SimpleNamespace(channel=OTHER, kind=GOT, body=(VERSION, number)))
    changes.advance(inbox)


def test_what_is_dealt_waits_for_a_sender_for_a_moment_only_and_what_comes_later_stays():
    clock, post, said = ManualClock(), Post(), []
    changes = _sharing(clock, post, said)
    inbox = deque([_entry("a", "b")])
    began = clock()
    changes.hand_over(HandOverRanges(VERSION, HALF, {OTHER: "express"}, (5,)), inbox)
    changes.advance(inbox)
    assert not post.sent and changes.wake_at == pytest.approx(began + PATIENCE)
    clock.advance_to(began + PATIENCE)
    changes.advance(inbox)
    assert len(post.of(ROWS)[0][1]) == 1
    changes.offer(_entry("c", "d"), inbox)
    assert _keys(inbox)[-2:] == ["c", "d"]
    changes.barrier(5, VERSION)
    _confirmed(changes, inbox)
    assert changes.idle and changes.wake_at is None


def test_a_new_sub_unit_processes_at_once_what_it_is_dealt_and_what_it_is_sent():
    clock, post, said, inbox = ManualClock(), Post(), [], deque()
    changes = _sharing(clock, post, said)
    changes.hold_ranges(HoldRanges(VERSION, ((0, 5, OTHER), (7, 9, 8)), {OTHER: "one", 8: "two"}))
    assert isinstance(said[-1], RangesHeld)
    changes.offer(_entry("sent"), inbox)
    assert _keys(inbox) == ["sent"]
    rows = tuple((e.sent, tuple(e.batch), False) for e in (_entry(None), _entry("b")))
    frame = SimpleNamespace(channel=OTHER, kind=ROWS, body=(VERSION, rows))
    changes.read(frame)
    changes.read(frame)  # once
    changes.advance(inbox)
    assert _keys(inbox) == ["sent", None, "b"]
    changes.read(SimpleNamespace(channel=OTHER, kind=STATE_END, body=(VERSION, 0, 0)))
    changes.advance(inbox)
    assert changes.active
    changes.lose_old_owner(SimpleNamespace(version=VERSION, old=8))
    changes.advance(inbox)
    assert changes.idle and isinstance(said[-1], StateInstalled)


def test_dealt_rows_are_not_taken_over():
    acks = Acks(1, 1, Codec(), MemoryWire(), lambda *_: None)
    dealt = Divider(DealtRows(HALF), lambda: 1, acks, 1000)
    assert dealt.dealt and not dealt.take_over(_entry("a")).taken
    assert not _divider().dealt and _divider().take_over(_entry("a")).taken


def test_what_is_not_confirmed_goes_again_in_order_after_ever_longer_pauses(giving):
    given, post, _ = giving
    given.advance(60.0)
    first = [(kind, body) for kind, body in post.sent]
    assert first[0][0] == ROWS and first[-1][0] == STATE_END
    given.got(OTHER, first[1][1][1])
    again = given.again_at
    given.advance(60.0)
    assert post.sent == first  # not so soon
    given._clock.advance_to(again)
    given.advance(60.0)
    assert post.sent[len(first) :] == [first[0], *first[2:]]
    assert given.again_at == pytest.approx(again + 2 * AGAIN)


def test_an_end_waits_for_portions_that_are_missing_and_what_comes_twice_is_confirmed_twice():
    post = Post()
    getting = _incoming(post, Store())
    getting.rows(OTHER, [])
    getting.offer(_entry("a"))
    getting.offer(_entry("b"))
    getting.state(OTHER, 2, [("b", b"2")])
    getting.end_after(OTHER, 3, 2)
    assert _released(getting) == [] and not getting.done
    getting.state(OTHER, 2, [("b", b"2")])
    assert getting.moved_keys == 1
    getting.state(OTHER, 1, [("a", b"1")])
    assert _released(getting) == ["a", "b"]
    getting.forget(NOW + 1)
    assert getting.done
    assert [number for _, number in post.of(GOT)] == [0, 2, 3, 2, 1]
