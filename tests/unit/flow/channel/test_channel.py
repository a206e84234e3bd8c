"""A frame of batches, from the sending end of a channel to the receiving one's reader."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import FrameError, PayloadError
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.frame import DATA, decode, encode_plain
from esault.flow.channel.lineage import Lineage
from esault.messages.settings import Settings
from esault.payload.codec import Codec


@dataclass
class Order:
    n: int


class Link:
    def __init__(self):
        self.frames = []

    def send(self, frame):
        self.frames.append(frame)
        return True


def sent(batches, ids=False):
    """The frames of these batches of (key, value), each of a root of its own."""
    link = Link()
    channel = OutChannel(1, 2, 3, link, Codec(), Settings(frame_rows=10_000), iter(range(1, 1000)).__next__, "u")
    for number, rows in enumerate(batches):
        keys, values = zip(*rows)
        names = [f"{number}-{i}" for i in range(len(rows))] if ids else None
        channel.add(Lineage((1, number, 0), 5.0), 0, keys, values, names, 7.0)
    channel.flush(7.0)
    return link.frames


def read(frame):
    return decode(frame, Codec()).body


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.text(), PLAIN), min_size=1, max_size=40), min_size=1, max_size=5),
    st.booleans(),
)
def test_batches_arrive_as_they_were_in_one_piece_or_column_by_column(batches, ids):
    (frame,) = sent(batches, ids)
    at, arrived = read(frame)
    assert at == 7.0
    assert [repr(list(zip(b.keys, b.values))) for b in arrived] == [repr(rows) for rows in batches]
    assert [b.root for b in arrived] == [(1, n, 0) for n in range(len(batches))]
    assert [b.id for b in arrived] == list(range(1, len(batches) + 1))
    assert [None if b.ids is None else len(b.ids) for b in arrived] == [len(r) if ids else None for r in batches]


#: first of a frame in one piece, which no MessagePack begins with
PLAIN_BYTE = 0xC1


@pytest.mark.parametrize("rows", [1, 20])
def test_plain_rows_go_in_one_piece_and_share_nothing(rows):
    one = [0]
    batches = [[(f"k{i}", one) for i in range(rows)] for _ in range(3)]
    (frame,) = sent(batches)
    assert frame[0] == PLAIN_BYTE
    values = [value for batch in read(frame)[1] for value in batch.values]
    assert len({id(value) for value in values}) == 3 * rows


@pytest.mark.parametrize("value", [Order(1), date(2026, 1, 2)])
def test_rows_with_an_object_among_them_go_column_by_column(value):
    (frame,) = sent([[("a", 1)] * 40, [("b", value)] * 40])
    assert frame[0] != PLAIN_BYTE
    assert read(frame)[1][1].values == (value,) * 40


def test_the_head_of_a_frame_is_the_same_in_both_forms():
    plain, other = sent([[("a", 1)]]) + sent([[("a", Order(1))]])
    assert decode(plain, Codec())[:4] == decode(other, Codec())[:4] == (DATA, 3, 2, 1)


@pytest.mark.parametrize("body", [(7.0,), (7.0, None), (7.0, [1]), (7.0, ((1,),))])
def test_what_is_no_batch_is_refused(body):
    with pytest.raises(FrameError):
        decode(Codec().pack((DATA, 3, 2, 1, body)), Codec())


@pytest.mark.parametrize("batches", [[], (), {}, [1], [((1, 1, 1), 1, 0, [1], [1], 5.0, None)]])
def test_what_is_no_piece_of_batches_is_refused(batches):
    with pytest.raises(FrameError):
        decode(encode_plain(Codec(), 3, 2, 1, 7.0, batches), Codec())


@given(st.data())
def test_a_piece_of_batches_that_is_cut_or_changed_is_read_or_refused(data):
    (frame,) = sent([[("a", 1), ("b", [2])]])
    assert read(frame)
    cut = data.draw(st.integers(1, len(frame) - 1))
    with pytest.raises(FrameError):
        decode(frame[:cut], Codec())
    at = data.draw(st.integers(0, len(frame) - 1))
    try:
        decode(frame[:at] + bytes([data.draw(st.integers(0, 255))]) + frame[at + 1 :], Codec())
    except FrameError:
        pass


@settings(max_examples=40)
@given(st.lists(st.text(max_size=3), max_size=3), st.sampled_from(["\ud800", "\udc80", "\udfff"]), st.booleans())
def test_half_of_a_surrogate_pair_among_the_keys_is_refused_wherever_it_stands(before, half, objects):
    rows = [(key, 1) for key in before] + [(f"a{half}", Order(1) if objects else 1)]
    with pytest.raises(PayloadError, match="lone surrogate"):
        sent([rows])


def test_numbers_and_syllables_that_look_like_it_are_let_through():
    rows = [(0x80A0ED, -0x80A0ED), ("\ud7a3", "\ud800"), ("k", 0xEDEDED)]
    (frame,) = sent([rows])
    assert list(zip(read(frame)[1][0].keys, read(frame)[1][0].values)) == rows
