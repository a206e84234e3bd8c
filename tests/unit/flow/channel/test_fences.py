"""Fences: what comes behind the fence of a new owner waits for the old owner's, whichever is read first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import FrameError
from esault.flow.channel.channel import InChannel
from esault.flow.channel.fences import TO_BE_NAMED, Fences

OLD, NEW = 7, 8


def pair():
    return InChannel(OLD, 1), InChannel(NEW, 2)


@pytest.mark.parametrize("body", [None, (), (1, 2), (1, 2, 3, 4), [1, 2, 3], (1, 2, "3"), (1.0, 2, 3), (True, 2, 3)])
def test_another_body_is_refused(body):
    old, new = pair()
    with pytest.raises(FrameError):
        Fences().read(new, body, [old, new])


def test_rows_of_a_new_owner_wait_for_the_old_one():
    old, new = pair()
    fences = Fences()
    fences.read(new, (3, 1, OLD), [old, new])
    assert fences.holds(new) and not fences.holds(old)
    fences.put_aside(new, "a", 1)
    fences.put_aside(new, "b", 2)
    assert fences.released([old, new]) == []
    fences.read(old, (3, 1, 0), [old, new])
    assert fences.released([old, new]) == [(new, "a", 1), (new, "b", 2)]
    assert not fences.holds(new) and fences.released([old, new]) == []


def test_nothing_waits_where_the_old_owner_was_read_first():
    old, new = pair()
    fences = Fences()
    fences.read(old, (3, 2, 0), [old, new])
    for portion in ((3, 2), (3, 1), (2, 9)):
        fences.read(new, (*portion, OLD), [old, new])
        assert not fences.holds(new)
    fences.read(new, (4, 1, OLD), [old, new])
    assert fences.holds(new)


def test_rows_of_a_bolt_that_was_chained_wait_for_who_has_run_it():
    """Those of two owners' fences are no word of it, and it is none of theirs."""
    old, new = pair()
    named = []
    fences = Fences(lambda *fence: named.append(fence))
    fences.read(old, (-NEW, 0, TO_BE_NAMED), [old])
    assert named == [(-NEW, 0, OLD)] and not fences.holds(old)
    fences.read(old, (3, 1, 0), [old, new])
    fences.read(new, (-NEW, 0, OLD), [old, new])
    fences.put_aside(new, "a", 1)
    assert fences.released([old, new]) == []
    fences.read(old, (-NEW, 0, 0), [old, new])
    assert fences.released([old, new]) == [(new, "a", 1)]
    fences.read(new, (4, 1, OLD), [old, new])
    assert fences.holds(new)


@pytest.mark.parametrize("how", ["ended", "gone"])
def test_an_old_owner_that_sends_no_more_is_not_waited_for(how):
    old, new = pair()
    fences = Fences()
    fences.read(new, (3, 1, OLD), [old, new])
    fences.put_aside(new, "a", 1)
    old.ended = how == "ended"
    assert fences.released([old, new] if how == "ended" else [new]) == [(new, "a", 1)]


def test_all_channels_of_the_old_owner_count():
    one, two, new = InChannel(OLD, 1), InChannel(OLD, 2), InChannel(NEW, 3)
    channels = [one, two, new]
    fences = Fences()
    fences.read(new, (1, 1, OLD), channels)
    fences.read(one, (1, 1, 0), channels)
    assert fences.holds(new) and fences.released(channels) == [] and fences.holds(new)
    fences.read(two, (1, 1, 0), channels)
    fences.released(channels)
    assert not fences.holds(new)


def test_an_older_fence_takes_nothing_back():
    old, new = pair()
    fences = Fences()
    fences.read(old, (5, 2, 0), [old, new])
    fences.read(old, (5, 1, 0), [old, new])
    assert old.passed == (5, 2)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=30))
def test_rows_behind_a_fence_are_read_behind_that_of_the_old_owner(steps):
    """`True`: the old owner's fence of a portion is read; `False`: a fence and a row of the new owner."""
    old, new = pair()
    channels = [old, new]
    fences, read, passed, put = Fences(), [], 0, 0
    for from_old, portion in steps:
        if from_old:
            fences.read(old, (1, portion, 0), channels)
            passed = max(passed, portion)
        elif fences.holds(new):
            fences.put_aside(new, ("row", put), 1)
            put += 1
        else:
            fences.read(new, (1, portion, OLD), channels)
            assert fences.holds(new) is (portion > passed)
        read += [frame[1] for _, frame, _ in fences.released(channels)]
    old.ended = True
    read += [frame[1] for _, frame, _ in fences.released(channels)]
    assert read == list(range(put))
