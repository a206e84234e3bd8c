"""What comes in is taken once, in order, and gaps are told of."""

from __future__ import annotations

from esault.flow.channel.frame import DATA, END, Frame
from esault.flow.channel.senders import Senders
from esault.payload.codec import Codec


def senders():
    broken = []
    known = Senders(0, Codec(), lambda sender, text: broken.append((sender, text)))
    known.add(1, 10)
    return known, broken


def frame(seq, kind=DATA):
    return Frame(kind, 0, 10, seq, None)


def test_a_gap_breaks_the_channel_and_is_told_once():
    known, broken = senders()
    assert known.admit(frame(1))
    assert known.admit(frame(3)) is None
    assert known.admit(frame(4)) is None
    assert broken == [(1, "frame 2 is missing, 3 came (DATA)")]
    assert not known


def test_who_died_when_all_was_done_has_ended_whatever_is_still_read_of_it():
    known, broken = senders()
    assert known.admit(frame(1))
    known.gone(1, last=True)
    assert known.ended
    assert known.admit(frame(2, END)) is None
    assert (bool(known), known.ended, broken, known.dropped) == (True, True, [], 1)


def test_who_died_before_is_no_sender_any_more():
    known, _ = senders()
    known.gone(1, last=False)
    assert not known
    assert known.admit(frame(1)) is None
