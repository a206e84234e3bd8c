"""The roots of one sub-unit: when another may be opened, what becomes durable in order, and what is replayed under which name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import REGISTER
from esault.flow.delivery.ledger import DONE, PROCESSED
from esault.flow.delivery.roots import STALLED, Roots
from esault.messages.settings import Settings

SELF, ACKER = 7, 40


class Post:
    def __init__(self):
        self.sent = []

    def put(self, kind, body):
        self.sent.append((kind, body))


class Acks:
    """Says where ledgers are: here, or in one ack server of two by number."""

    def __init__(self, ackers=()):
        self.ackers, self.posts = ackers, {acker: Post() for acker in ackers}

    def acker(self, root):
        return self.ackers[root[1] % len(self.ackers)] if self.ackers else root[0]

    def number(self, root):
        return root % len(self.ackers) if self.ackers else None

    def post(self, incarnation):
        return self.posts.get(incarnation)


class Bench:
    """`ids`: what each batch that is emitted opens."""

    def __init__(self, ackers=(), window=None, **settings):
        self.emitted, self.ids = [], {}
        self.acks = Acks(ackers)
        self.roots = Roots(SELF, Settings(**settings), self.acks, self.emit, window)

    def emit(self, lineage, payload):
        id = len(self.emitted) + 1 << 8
        self.emitted.append((lineage.root, payload))
        self.ids[lineage.root] = id
        lineage.p ^= id
        lineage.d ^= id

    def open(self, *positions, now=0.0, rows=1):
        for position in positions:
            self.roots.open([("", ("k",) * rows, (position,) * rows, None)], now, position, now)
        self.roots.check()

    def processed(self, number, now=1.0, attempt=0):
        self.roots.ack((SELF, number, attempt), self.ids[SELF, number, attempt], 0, now)
        self.roots.check()

    def durable(self, number, now=1.0, attempt=0):
        self.roots.ack((SELF, number, attempt), 0, self.ids[SELF, number, attempt], now)
        self.roots.check()

    def done(self, number, now=1.0, attempt=0):
        id = self.ids[SELF, number, attempt]
        self.roots.ack((SELF, number, attempt), id, id, now)
        self.roots.check()


def test_the_window_is_given_back_when_rows_are_processed_and_positions_when_they_are_durable():
    bench = Bench(window=2)
    roots = bench.roots
    bench.open("a", "b")
    assert not roots.credit
    assert (roots.pending, roots.open_count) == (2, 2)
    assert roots.oldest() == (0, 0.0)
    bench.processed(0, now=3.0)
    assert roots.credit
    assert (roots.pending, roots.open_count, roots.acked) == (1, 2, 0)
    assert roots.oldest() == (1, 0.0)
    assert roots.committed is None
    bench.durable(0, now=4.0)
    assert (roots.committed, roots.acked, roots.open_count) == ("a", 1, 1)
    assert [root.number for root in roots] == [1]
    assert (roots.completion.count, roots.ack_latency.count) == (1, 1)
    assert roots.ack_latency.quantile(1.0) == pytest.approx(4.0, rel=0.1)
    assert roots.completion.quantile(1.0) == pytest.approx(3.0, rel=0.1)


def test_durable_roots_behind_one_that_is_not_are_not_committed_yet():
    bench = Bench()
    bench.open("a", "b", "c")
    bench.done(2)
    bench.done(1)
    assert bench.roots.committed is None
    assert bench.roots.oldest() == (0, 0.0)
    bench.done(0)
    assert bench.roots.committed == "c"
    assert bench.roots.oldest() is None


@given(st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6))
def test_in_whatever_order_roots_are_done_the_commit_is_the_longest_prefix(order, at_once):
    bench = Bench()
    bench.open(*range(6))
    done = set()
    for number, whole in zip(order, at_once):
        if whole:
            bench.done(number)
        else:
            bench.durable(number)
            bench.processed(number)
        done.add(number)
        prefix = next((n for n in range(6) if n not in done), 6)
        assert bench.roots.committed == (prefix - 1 if prefix else None)
        assert bench.roots.acked == len(done)
    assert bench.roots.pending == 0


def test_undurable_roots_are_bounded_too():
    bench = Bench(max_undurable=2, max_pending=8)
    bench.open("a", "b")
    bench.processed(0)
    bench.processed(1)
    assert not bench.roots.credit
    bench.durable(0)
    assert bench.roots.credit


def test_where_several_are_fed_the_window_is_open_until_each_has_rows():
    bench = Bench(window=1, pending_rows=10)
    bench.open("a", rows=5)
    assert not bench.roots.credit
    bench.roots.widen(3)
    assert bench.roots.credit  # 5 of 30 rows
    bench.open("b", rows=25)
    assert not bench.roots.credit
    bench.roots.widen(1)
    bench.processed(0)
    bench.processed(1)
    assert bench.roots.credit
    bench.open("c")
    assert not bench.roots.credit
    bench.roots.widen(1, filling=2.0)
    assert bench.roots.credit


def test_without_acks_all_is_committed_at_once_and_nothing_is_kept():
    bench = Bench(delivery="none")
    bench.open("a", "b")
    assert (bench.roots.committed, bench.roots.acked, bench.roots.emitted) == ("b", 2, 2)
    assert bench.roots.open_count == 0
    assert [root for root, _ in bench.emitted] == [(SELF, 0, 0), (SELF, 1, 0)]


def test_what_is_sent_beside_the_source_does_not_move_it():
    bench = Bench()
    assert bench.roots.open_beside([("", ("k",), ("v",), None)], 1.0).position is None
    bench.open("a")
    beside = bench.roots.open_beside([("", ("k",), ("v",), None)], 2.0)
    assert beside.position == "a"
    for number in range(3):
        bench.done(number)
    assert beside.done
    assert bench.roots.committed == "a"
    later = bench.roots.open_beside([("", ("k",), ("v",), None)], 3.0)
    assert later.position == "a"
    nothing = Bench(delivery="none")
    assert nothing.roots.open_beside([("", ("k",), ("v",), None)], 2.0) is None


def test_a_root_that_came_with_a_checkpoint_is_named_first_and_opened_when_its_batches_are_there():
    bench = Bench()
    name = bench.roots.reserve()
    bench.open("a")
    assert name == (SELF, 0, 0)
    assert bench.emitted[0][0] == (SELF, 1, 0)
    bench.roots.adopt(name, 0b101, 4, 2.0)
    assert (bench.roots.pending, bench.roots.emitted) == (2, 2)
    bench.roots.ack(name, 0b100, 0b100, 3.0)
    assert bench.roots.open_count == 2
    bench.roots.ack(name, 0b001, 0b001, 3.0)
    assert bench.roots.open_count == 1
    bench.roots.check()


def test_with_checkpoints_what_is_processed_is_done_and_nothing_is_replayed_in_place():
    bench = Bench(delivery="eo")
    bench.open("a", "b")
    bench.processed(0)
    assert (bench.roots.committed, bench.roots.open_count) == ("a", 1)
    bench.roots.mark((SELF, 1, 0), STALLED, 5.0)
    assert bench.roots.stalled
    bench.roots.grace(5.0)
    bench.roots.acker_lost(0)
    bench.roots.watch(1e6)
    assert not bench.roots.overdue
    assert not bench.roots.replay_one(1e6)


def test_a_replay_is_a_new_attempt_and_marks_of_the_old_one_say_nothing():
    bench = Bench()
    bench.open("a")
    bench.roots.mark((SELF, 0, 0), STALLED, 5.0)
    bench.roots.mark((SELF, 0, 0), STALLED, 5.0)  # of the attempt that is over
    assert bench.roots.overdue
    assert bench.roots.replay_one(6.0)
    assert not bench.roots.replay_one(6.0)
    assert [root for root, _ in bench.emitted] == [(SELF, 0, 0), (SELF, 0, 1)]
    assert bench.emitted[0][1] == bench.emitted[1][1]
    assert bench.roots.replayed == 1
    bench.roots.mark((SELF, 0, 0), DONE, 7.0)
    bench.roots.mark((3, 0, 1), DONE, 7.0)  # of another owner
    assert bench.roots.open_count == 1
    bench.done(0, attempt=1)
    assert (bench.roots.open_count, bench.roots.committed) == (0, "a")
    bench.roots.mark((SELF, 0, 1), DONE, 8.0)  # it is gone
    assert bench.roots.acked == 1


def test_one_that_was_queued_and_is_done_meanwhile_is_not_sent_again():
    bench = Bench()
    bench.open("a", "b")
    for number in range(2):
        bench.roots.mark((SELF, number, 0), STALLED, 5.0)
    bench.roots.mark((SELF, 0, 1), DONE | PROCESSED, 5.5)
    assert bench.roots.replay_one(6.0)
    assert bench.emitted[-1][0] == (SELF, 1, 1)
    assert not bench.roots.replay_one(6.0)
    assert bench.roots.replayed == 1


def test_after_a_death_what_is_open_has_a_while_to_end_on_its_own():
    bench = Bench(min_grace=0.5)
    bench.open("a", "b")
    bench.roots.grace(10.0)
    bench.roots.grace(10.3)  # one more death does not give it longer
    bench.open("c", now=10.1)  # opened behind the death
    bench.done(1, now=10.2)
    bench.roots.watch(10.49)
    assert not bench.roots.overdue
    bench.roots.watch(10.5)
    assert bench.roots.replay_one(10.5)
    assert bench.emitted[-1][0] == (SELF, 0, 1)
    bench.roots.watch(99.0)
    assert not bench.roots.replay_one(99.0)


def test_the_grace_is_twice_as_long_as_roots_have_taken():
    bench = Bench(min_grace=0.5)
    bench.open("a")
    bench.done(0, now=4.0)
    bench.open("b", now=5.0)
    bench.roots.grace(10.0)
    bench.roots.watch(10.0 + 7.0)
    assert not bench.roots.overdue
    bench.roots.watch(10.0 + 10.0)
    assert bench.roots.overdue


def test_a_root_without_acks_for_long_is_replayed():
    bench = Bench(replay_after=100.0)
    bench.open("a")
    bench.roots.watch(99.0)
    assert not bench.roots.overdue
    bench.roots.watch(201.0)
    assert bench.roots.overdue


def test_ledgers_of_ack_servers_are_told_and_what_a_dead_one_kept_is_sent_again():
    bench = Bench(ackers=(ACKER, ACKER + 1))
    bench.open("a", "b", "c")
    ids = bench.ids
    assert bench.acks.posts[ACKER].sent == [
        (REGISTER, (((SELF, n, 0), ids[SELF, n, 0], ids[SELF, n, 0]),)) for n in (0, 2)
    ]
    bench.roots.acker_lost(0)
    bench.roots.acker_lost(0)
    while bench.roots.replay_one(2.0):
        pass
    assert [root for root, _ in bench.emitted[3:]] == [(SELF, 0, 1), (SELF, 2, 1)]
    del bench.acks.posts[ACKER + 1]  # it is not known any more: nothing is sent, and it is no error
    bench.open("d")
    assert bench.roots.open_count == 4


def test_event_time_is_held_at_what_it_was_before_the_oldest_root_that_is_not_done():
    bench = Bench()
    told = {"b": 1.0}
    bench.open("a")
    assert bench.roots.held is None
    bench.done(0)
    bench.roots.times = lambda: dict(told)
    bench.open("b")
    told["b"] = 2.0
    bench.open("c")
    assert bench.roots.held == {"b": 1.0}
    bench.done(1)
    assert bench.roots.held == {"b": 2.0}
    bench.done(2)
    assert bench.roots.held is None


def test_who_asks_is_told_of_each_root_that_is_processed():
    bench = Bench()
    told = []
    bench.roots.on_processed = told.append
    bench.open("a", "b")
    bench.processed(1)
    bench.done(0)
    assert told == [1, 0]
