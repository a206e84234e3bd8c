"""The watermark of a sub-unit: whose words count, and when."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.watermark.merging import Merging, word

LEFT, RIGHT = 1, 2


def merging(*senders):
    made = Merging()
    for sender in senders:
        made.add(sender, 10 + sender)
    return made


def said(made, sender, value, held=0, after=(), idle=False, gave=0):
    made.read(0, 10 + sender, (value, idle, held, after, gave))
    made.through(0, True)
    return made.current


def ended(made, sender):
    return said(made, sender, math.inf)


def test_it_is_the_least_and_waits_for_all():
    made = merging(LEFT, RIGHT)
    assert said(made, LEFT, 5.0) == -math.inf
    assert said(made, RIGHT, 3.0) == 3.0
    assert said(made, RIGHT, 9.0) == 5.0


def test_a_word_counts_when_the_rows_before_it_have_been_taken():
    made = merging(LEFT)
    made.read(4, 11, (5.0, False, 0, (), 0))
    assert not made.through(3, False)
    assert made.through(4, False)
    assert made.current == 5.0
    made.read(9, 11, (6.0, False, 0, (), 0))
    assert made.through(4, True)  # nothing is left that it could have stood behind


def test_it_never_goes_back():
    made = merging(LEFT)
    said(made, LEFT, 5.0)
    assert said(made, LEFT, -math.inf) == 5.0
    assert said(made, LEFT, 4.0) == 5.0


def test_who_is_idle_or_has_ended_is_not_waited_for():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    assert said(made, RIGHT, 3.0, idle=True) == 5.0
    assert said(made, LEFT, 7.0) == 7.0
    assert ended(made, RIGHT) == 7.0
    assert not made.idle
    said(made, LEFT, 7.0, idle=True)
    assert made.idle
    assert ended(made, LEFT) == math.inf


def test_who_was_idle_and_comes_back_behind_is_waited_for_when_it_has_caught_up():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0, idle=True)
    assert said(made, RIGHT, 1.0) == 5.0
    assert said(made, LEFT, 7.0) == 7.0  # RIGHT does not hold it up
    assert not made.idle
    assert said(made, RIGHT, 6.0) == 7.0
    assert said(made, LEFT, 8.0) == 8.0
    assert said(made, RIGHT, 8.0) == 8.0  # now it counts again
    assert said(made, LEFT, 20.0) == 8.0
    assert said(made, RIGHT, 9.0) == 9.0


def test_who_was_idle_and_comes_back_level_is_waited_for_at_once():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0, idle=True)
    said(made, RIGHT, 5.0)
    assert said(made, LEFT, 7.0) == 5.0


def test_alone_one_that_is_behind_takes_the_watermark_nowhere():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0, idle=True)
    said(made, RIGHT, 4.0)
    assert said(made, LEFT, 6.0, idle=True) == 5.0  # RIGHT is at work, and LEFT's last word is no one's
    assert said(made, RIGHT, 5.5) == 5.5


def test_one_that_holds_back_is_waited_for_though_it_was_idle():
    """It is to get keys, whose rows may be older than all that was said."""
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0, idle=True)
    assert said(made, RIGHT, -math.inf, held=2) == 5.0
    assert said(made, LEFT, 9.0) == 5.0
    assert said(made, RIGHT, 4.0, held=2) == 5.0  # what came to it with the keys may be as old as that
    assert said(made, RIGHT, 9.0, held=2) == 9.0


def test_who_comes_later_is_waited_for():
    made = merging(LEFT)
    said(made, LEFT, 5.0)
    made.add(RIGHT, 12)
    assert said(made, LEFT, 9.0) == 5.0
    assert said(made, RIGHT, 8.0) == 8.0


def test_a_sender_that_gave_keys_away_is_not_believed_before_the_new_owner_holds_back():
    """Else rows on their way between the two would be passed: LEFT is behind, RIGHT ahead and gets keys of LEFT."""
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 30.0)
    # What LEFT says afterwards is read first, since the way from RIGHT is longer.
    assert said(made, LEFT, 25.0, after=((RIGHT, 3),)) == 5.0
    assert ended(made, LEFT) == 5.0
    # Now RIGHT's word comes that it holds back; LEFT is done, and RIGHT alone says how far it is.
    assert said(made, RIGHT, -math.inf, held=3) == 5.0
    assert said(made, RIGHT, 20.0, held=3) == 20.0


def test_a_sender_that_sends_by_a_newer_table_is_not_believed_before_that_is_known_here():
    """Else windows would close whose rows it has sent to their new owner already."""
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 30.0)
    assert said(made, LEFT, 25.0, gave=3) == 5.0
    made.given = 3
    assert said(made, RIGHT, 31.0) == 25.0


def test_a_new_owner_that_is_gone_is_not_waited_for():
    made = merging(LEFT, RIGHT)
    said(made, RIGHT, 30.0)
    said(made, LEFT, 25.0, after=((RIGHT, 3),))
    assert made.current == -math.inf
    made.gone(0, RIGHT)
    made.through(0, True)
    assert made.current == 25.0
    assert said(made, LEFT, 26.0, after=((77, 3),)) == 26.0


def test_a_sender_with_a_new_channel_is_one_sender():
    made = merging(LEFT)
    said(made, LEFT, 5.0)
    made.add(LEFT, 99)
    made.gone(0, LEFT, but=99)
    made.through(0, True)
    made.read(0, 11, (50.0, False, 0, (), 0))
    made.read(0, 99, (6.0, False, 0, (), 0))
    made.through(0, True)
    assert made.current == 6.0


def test_what_is_no_word_says_nothing():
    for good in ((5.0, False, 0, (), 0), (-math.inf, True, 2, ((1, 2),), 3)):
        assert word(good) == good
    for body in (
        None,
        5,
        "x",
        (5.0, False, 0, ()),
        (5.0, 0, 0, (), 0),
        (5, False, 0, (), 0),
        (math.nan, False, 0, (), 0),
    ):
        assert word(body) is None
    for body in (
        (5.0, False, 0.0, (), 0),
        (5.0, False, 0, 5, 0),
        (5.0, False, 0, (5,), 0),
        (5.0, False, 0, ((1, "x"),), 0),
        (5.0, False, 0, (), None),
    ):
        assert word(body) is None


def test_if_all_are_idle_nobody_is_waited_for():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    assert said(made, LEFT, 5.0, idle=True) == -math.inf
    assert said(made, RIGHT, -math.inf, idle=True) == 5.0


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.floats(-100, 100), st.booleans(), st.booleans())))
def test_it_is_never_ahead_of_anyone_who_counts(events):
    made = merging(1, 2, 3)
    told, before = dict.fromkeys((1, 2, 3), (-math.inf, False)), -math.inf
    behind = set()
    for sender, value, idle, ends in events:
        if sender not in told:
            continue
        if ends:
            ended(made, sender)
            behind.discard(sender)
            del told[sender]
            if not told:
                assert made.current == math.inf
                return
        else:
            said(made, sender, value, idle=idle)
            returns = (told[sender][1] or sender in behind) and not idle and value < before
            behind = behind | {sender} if returns else behind - {sender}
            told[sender] = (value, idle)
        busy = [each for each, (_, idle) in told.items() if not idle]
        counted = [told[each][0] for each in busy if each not in behind]
        if busy:
            most = min(counted, default=before)
        else:
            most = max((v for v, _ in told.values()), default=before)
        assert made.current == max(before, most)
        before = made.current


def test_a_dead_sender_holds_back_until_its_successor_has_said_more():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0)
    made.gone(0, RIGHT, awaited=True)
    assert said(made, LEFT, 9.0) == 3.0
    made.add(3, 13)
    assert said(made, LEFT, 10.0) == 3.0
    assert said(made, 3, 4.0) == 4.0
    assert said(made, 3, 20.0) == 10.0


def test_a_successor_that_comes_before_the_last_rows_are_taken_is_waited_for_as_well():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0)
    made.gone(7, RIGHT, awaited=True)
    made.add(3, 13)
    made.read(7, 11, (9.0, False, 0, (), 0))
    made.through(7, False)
    assert made.current == 3.0
    assert said(made, 3, 6.0) == 6.0


def test_one_that_ended_or_was_idle_when_it_died_holds_nothing_back():
    for last in ((math.inf, False), (3.0, True)):
        made = merging(LEFT, RIGHT)
        said(made, LEFT, 5.0)
        made.read(0, 12, (*last, 0, (), 0))
        made.gone(0, RIGHT, awaited=True)
        assert said(made, LEFT, 9.0) == 9.0


def test_one_that_left_in_order_is_not_waited_for():
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0)
    made.gone(0, RIGHT)
    assert said(made, LEFT, 9.0) == 9.0


def test_a_new_channel_of_one_that_lives_takes_no_dead_ones_place():
    """The channel of LEFT broke while the successor of RIGHT is still to come, whose rows come again."""
    made = merging(LEFT, RIGHT)
    said(made, LEFT, 5.0)
    said(made, RIGHT, 3.0)
    made.gone(0, RIGHT, awaited=True)
    made.add(LEFT, 21)
    made.gone(0, LEFT, but=21)
    made.read(0, 21, (9.0, False, 0, (), 0))
    made.through(0, True)
    assert made.current == 3.0
    made.add(3, 22)
    made.read(0, 22, (8.0, False, 0, (), 0))
    made.through(0, True)
    assert made.current == 8.0
