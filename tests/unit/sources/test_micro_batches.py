"""MicroBatches: windows and slices by the clock, released in any order, positions that are exact all the same."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Columns, EndOfStream, SourceError, Spout, TopologyError
from esault.sources import Items, MicroBatches, Paced
from esault.topology.context import Context
from esault.topology.spout import has_position

#: a multiple of all windows in here
START = 1200.0


class Feed(Spout):
    """Gives what a test puts in `rows`, and can go on after a restart."""

    def __init__(self):
        self.rows, self.at, self.committed, self.calls = [], 0, [], []
        self.ended = False

    def read(self, limit):
        found = self.rows[self.at : self.at + limit]
        if not found and self.ended:
            raise EndOfStream
        self.at += len(found)
        return found

    def position(self):
        return self.at

    def seek(self, position):
        self.at = position

    def commit(self, position):
        self.committed.append(position)

    def lag(self):
        return len(self.rows) - self.at

    def progress(self):
        return (self.at, len(self.rows))

    def close(self):
        self.calls.append("closed")


def opened(feed=None, clock=None, **arguments):
    feed = Feed() if feed is None else feed
    clock = clock or [START]
    spout = MicroBatches(feed, **{"window": 1.0, "slice": 0.25, **arguments})
    spout.check()
    spout.open(Context("batched", now=lambda: clock[0]))
    return spout, feed, clock


def pairs(low, high):
    return [(i, i) for i in range(low, high)]


def filled(spout, feed, clock, counts, at=None):
    """One window: so many rows in each of its slices, then it closes."""
    at = clock[0] if at is None else at
    for i, count in enumerate(counts):
        clock[0] = at + 0.25 * i + 0.01
        feed.rows += pairs(len(feed.rows), len(feed.rows) + count)
        spout.collect()
    clock[0] = at + 1.0
    spout.collect()


def all_of(spout, limit=100):
    found = []
    while rows := spout.read(limit):
        found += rows
    return found


def test_a_window_goes_on_as_it_came_when_nobody_releases():
    spout, feed, clock = opened()
    feed.rows = pairs(0, 3)
    assert spout.read(10) == []
    clock[0] += 0.6
    feed.rows += pairs(3, 5)
    assert spout.read(10) == []
    assert spout.due() is None
    clock[0] += 0.4
    assert spout.closed() is None
    assert spout.read(2) == pairs(0, 2)
    assert spout.due() == START
    assert all_of(spout) == pairs(2, 5)
    feed.ended = True
    clock[0] += 0.01
    with pytest.raises(EndOfStream):
        spout.read(10)


def test_slices_go_on_in_the_order_in_which_they_are_released():
    spout, feed, clock = opened()
    spout.release(-1, ())
    filled(spout, feed, clock, (2, 3, 0, 1))
    number, slices = spout.closed()
    assert slices == ((0, 2), (1, 3), (3, 1))
    assert spout.read(10) == []
    spout.release(number + 1, (0,))
    spout.release(number, (3, 1, 2, 7))
    assert spout.emitting()
    assert spout.closed() == (number, ((0, 2),))
    assert spout.read(10) == [(5, 5)]
    assert spout.first() == 5
    assert spout.read(2) == pairs(2, 4)
    assert (spout.first(), spout.due()) == (2, START + 0.26)
    assert spout.read(2) == pairs(4, 5)
    assert spout.read(2) == []
    assert not spout.emitting()
    spout.release(number, (0,))
    assert all_of(spout) == pairs(0, 2)
    assert spout.closed() is None


def test_no_more_is_read_than_one_window_that_waits_and_one_that_is_collected():
    spout, feed, clock = opened(rows=4)
    spout.release(-1, ())
    feed.rows = pairs(0, 4)
    spout.collect()
    feed.rows += pairs(4, 8)
    clock[0] += 0.01
    spout.collect()
    feed.rows += pairs(8, 12)
    clock[0] += 0.01
    spout.collect()
    assert (feed.at, spout.lag()) == (8, 4)
    number, _ = spout.closed()
    spout.release(number, (0,))
    assert spout.read(10) == pairs(0, 4)
    clock[0] += 0.01
    spout.collect()
    assert feed.at == 12
    assert spout.closed()[0] > number


def test_nothing_is_held_for_longer_than_two_windows():
    spout, feed, clock = opened()
    spout.release(-1, ())
    filled(spout, feed, clock, (2, 2, 2, 2))
    number, _ = spout.closed()
    spout.release(number, (2,))
    clock[0] += 1.99
    assert all_of(spout) == pairs(4, 6)
    clock[0] += 0.02
    assert all_of(spout) == [*pairs(0, 4), *pairs(6, 8)]
    filled(spout, feed, clock, (1, 0, 0, 0))  # and nobody is waited for any more
    clock[0] += 1
    assert all_of(spout) == pairs(8, 9)


def test_a_successor_reads_what_has_not_gone_out_and_nothing_else():
    spout, feed, clock = opened()
    spout.release(-1, ())
    filled(spout, feed, clock, (2, 3, 0, 4))
    number, _ = spout.closed()
    assert spout.position() == (None, 0, ())  # the beginning
    spout.release(number, (3,))
    assert spout.read(3) == pairs(5, 8)
    assert spout.position() == (None, 0, ((5, 8),))
    spout.release(number, (0,))
    rest = Feed()
    rest.rows = feed.rows
    other, _, at = opened(rest)
    other.seek(spout.position())
    other.collect()
    at[0] += 1
    assert other.position() == spout.position()
    rows = all_of(other)
    assert rows == [*pairs(0, 5), *pairs(8, 9)]
    assert other.position() == (9, 9, ())
    assert all_of(spout) == [*pairs(8, 9), *pairs(0, 2)]
    assert spout.position() == (None, 0, ((0, 2), (5, 9)))
    spout.commit(spout.position())
    assert feed.committed == []
    spout.release(number, (1,))
    assert all_of(spout) == pairs(2, 5)
    assert spout.position() == (9, 9, ())
    spout.commit(spout.position())
    assert feed.committed == [9]


def test_a_drain_reads_no_more_and_all_that_was_collected_goes_on():
    spout, feed, clock = opened()
    spout.release(-1, ())
    filled(spout, feed, clock, (1, 1, 1, 1))
    feed.rows += pairs(4, 6)
    clock[0] += 0.01
    spout.collect()
    spout.drain()
    feed.rows += pairs(6, 9)
    clock[0] += 0.01
    found = []
    with pytest.raises(EndOfStream):
        while True:
            found += spout.read(10)
    assert found == pairs(0, 6)


def test_an_orderly_stop_collects_what_the_spout_within_has_taken_and_gives_it_out():
    class Taken(Feed):
        def halt(self):
            self.rows += pairs(len(self.rows), len(self.rows) + 3)
            return "rest"

        def begin_with(self, rest):
            self.calls.append(rest)

    spout, feed, clock = opened(Taken())
    spout.release(-1, ())
    feed.rows += pairs(0, 2)
    spout.collect()
    clock[0] += 0.01
    assert spout.halt() == "rest"
    found = []
    with pytest.raises(EndOfStream):
        while True:
            found += spout.read(2)
    assert found == pairs(0, 5)
    spout.begin_with("rest")
    assert feed.calls == ["rest"]


def test_what_cannot_seek_and_waits_to_be_told_is_refused():
    class Told(Feed):
        seekable = False

    with pytest.raises(TopologyError, match="Told cannot seek .* leave MicroBatches out"):
        MicroBatches(Told())


def test_tuples_lie_in_the_slice_in_which_they_were_due():
    clock = [START]
    paced = Paced(Items(pairs(0, 100)), 8)
    spout, _, _ = opened(paced, clock)
    spout.release(-1, ())
    spout.collect()
    for i in range(1, 8):
        clock[0] = START + i / 8 + 0.2  # always late
        spout.collect()
    clock[0] = START + 1.3
    spout.collect()
    assert [number for number, _ in spout.closed()[1]] == [0, 1, 2, 3]
    assert sum(rows for _, rows in spout.closed()[1]) == 8


def test_columns_that_cannot_be_sliced_are_cut_too():
    class Views(Spout):
        def __init__(self):
            counts = {"a": 1, "b": 2, "c": 3}
            self.left = [Columns(counts.keys(), counts.values()), Columns(None, deque([4, 5, 6]))]

        def read(self, limit):
            return self.left.pop(0) if self.left else []

    spout, _, clock = opened(Views())
    assert spout.read(2) == []
    clock[0] += 1
    read = [spout.read(2) for _ in range(4)]
    assert [(c.keys and list(c.keys), list(c.values)) for c in read] == [
        (["a", "b"], [1, 2]),
        (["c"], [3]),
        (None, [4, 5]),
        (None, [6]),
    ]


def test_columns_are_cut_and_stay_columns():
    class Wide(Spout):
        def __init__(self):
            self.left = [Columns(None, np.arange(5)), Columns(["a", "b"], [1, 2])]

        def read(self, limit):
            return self.left.pop(0) if self.left else []

    spout, _, clock = opened(Wide())
    assert not has_position(spout)
    assert spout.read(2) == []
    clock[0] += 1
    first, second, third, last = (spout.read(2) for _ in range(4))
    assert [list(c.values) for c in (first, second, third)] == [[0, 1], [2, 3], [4]]
    assert first.keys is None
    assert (last.keys, last.values) == (["a", "b"], [1, 2])
    assert spout.read(2) == []
    assert spout.position() is None


def test_the_spout_within_is_asked():
    spout, feed, _ = opened()
    assert has_position(spout)
    assert type(spout).__name__ == "MicroBatches"
    feed.rows = pairs(0, 4)
    spout.read(2)
    assert (spout.progress(), spout.lag()) == ((4, 4), 0)
    spout.commit(None)
    spout.close()
    assert (feed.committed, feed.calls) == ([None], ["closed"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((Items,), "pass Items\\(...\\)"),
        ((3,), "3 is no spout"),
        ((Feed(), 0), "window=0"),
        ((Feed(), 1.5, "x"), "slice='x'"),
        ((Feed(), 1.0, 2.0), "slice=2 must not be longer than window=1"),
    ],
)
def test_what_cannot_be_is_refused(arguments, told):
    with pytest.raises(TopologyError, match=told):
        MicroBatches(*arguments)
    with pytest.raises(TopologyError, match="rows=0"):
        MicroBatches(Feed(), rows=0)


def test_a_spout_that_returns_nothing_at_all_is_told_of():
    class Nothing(Spout):
        def read(self, limit):
            return None

    spout, _, _ = opened(Nothing())
    with pytest.raises(SourceError, match="Nothing.read returned None"):
        spout.collect()


def test_a_position_of_another_spout_is_refused():
    spout, _, _ = opened()
    with pytest.raises(SourceError, match="left the position 17, which is none of its own"):
        spout.seek(17)


@given(
    counts=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
    lives=st.integers(1, 4),
)
def test_in_any_order_over_any_lives_each_row_goes_out_once(counts, order, lives):
    """Each life ends somewhere; the next one goes on from where it stood."""
    rows = pairs(0, sum(map(sum, counts)))
    out, position = [], None
    for life in range(lives):
        feed = Feed()
        feed.ended = True
        clock = [START + 100 * life]
        spout, _, _ = opened(feed, clock, rows=order.randint(3, 30))
        if position is not None:
            spout.seek(position)
        spout.release(-1, ())
        feed.rows = rows
        try:
            for _ in range(order.randint(1, 20) if life < lives - 1 else 10_000):
                clock[0] += 0.1
                feed.read = lambda limit, feed=feed: Feed.read(feed, order.randint(1, 4))
                got = spout.read(order.randint(1, 5))
                out += got
                if got:
                    assert [key for key, _ in got] == list(range(spout.first(), spout.first() + len(got)))
                if closed := spout.closed():
                    numbers = [number for number, _ in closed[1]]
                    spout.release(closed[0], order.sample(numbers, order.randint(1, len(numbers))))
        except EndOfStream:
            pass
        position = spout.position()
    assert sorted(out) == rows
