"""The cut through the streams: nothing from behind it is processed before it has come everywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.channel import InChannel
from esault.flow.checkpoint.alignment import Alignment


def channels(count):
    return [InChannel(10 + number, number) for number in range(count)]


def test_a_channel_is_held_from_its_cut_on():
    one, two = channels(2)
    cut = Alignment()
    cut.cut(one, 4)
    assert cut.holds(one) and not cut.holds(two) and not cut.complete([one, two])
    cut.put_aside(one, "a", 1)
    cut.cut(two, 4)
    assert cut.complete([one, two])
    assert cut.release() == [(one, "a", 1)]
    assert not cut.holds(one) and cut.number is None and not cut.complete([one, two])


def test_a_channel_that_has_ended_counts_as_having_it():
    one, two = channels(2)
    cut = Alignment()
    assert cut.begin(1) and not cut.complete([one, two])
    one.ended = two.ended = True
    assert cut.complete([one, two]) and cut.complete([])


def test_frames_of_a_checkpoint_that_is_over_do_nothing():
    (one,) = channels(1)
    cut = Alignment()
    cut.cut(one, 3)
    cut.release()
    for number in (1, 2, 3):
        cut.cut(one, number)
        assert cut.number is None and not cut.holds(one)
    assert cut.begin(4)


def test_one_that_was_given_up_does_not_come_back():
    one, two = channels(2)
    cut = Alignment()
    cut.cut(one, 5)
    assert cut.abandon(5)
    assert cut.release() == []
    cut.cut(two, 5)
    assert cut.number is None
    assert not cut.abandon(9)
    assert not cut.begin(9) and cut.begin(10)


def test_an_older_one_that_is_given_up_leaves_the_newer_one_on():
    (one,) = channels(1)
    cut = Alignment()
    cut.cut(one, 5)
    assert not cut.abandon(4)
    assert cut.holds(one) and cut.number == 5


def test_a_newer_one_takes_the_place_of_one_that_is_on():
    one, two = channels(2)
    cut = Alignment()
    cut.cut(one, 5)
    cut.cut(two, 6)
    assert cut.number == 6 and cut.holds(two) and not cut.holds(one)
    cut.cut(one, 5)
    assert not cut.holds(one)
    assert cut.begin(6) and not cut.begin(5)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40))
def test_rows_before_the_cut_are_processed_and_those_behind_it_wait_in_order(steps):
    """Of each step: on which channel, and whether it is the cut or a row."""
    ways = channels(3)
    cut, was_cut, processed, aside = Alignment(), set(), [], []
    for at, (number, is_cut) in enumerate(steps):
        way = ways[number]
        if cut.holds(way):
            cut.put_aside(way, at, 1)
            aside.append(at)
        elif is_cut:
            cut.cut(way, 1)
            was_cut.add(number)
        else:
            processed.append(at)
        assert cut.complete(ways) is (len(was_cut) == 3)
    assert [frame for _, frame, _ in cut.release()] == aside
    assert not set(aside) & set(processed)
