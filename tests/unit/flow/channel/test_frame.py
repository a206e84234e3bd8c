"""Frames as they come from the wire: what is none is refused by what is wrong with it, and never read halfway."""

from __future__ import annotations

import pytest

from esault.errors import FrameError
from esault.flow.channel.frame import ACK, DATA, END, MARK, REGISTER, decode, encode_plain
from esault.payload.codec import Codec

ROOT = (3, 1, 0)
BATCH = (ROOT, 5, 0, ("a", "b"), (1, 2), 7.0, None)


def decoded(value):
    codec = Codec()
    return decode(codec.pack(value), codec)


def changed(place, value):
    return (*BATCH[:place], value, *BATCH[place + 1 :])


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ("text", "five fields"),
        ((DATA, 1, 1, 1), "five fields"),
        ((DATA, 1, "1", 1, None), "four integers"),
        ((99, 1, 1, 1, None), "a known kind"),
        ((DATA, 1, 1, 1, None), "a time and at least one batch"),
        ((DATA, 1, 1, 1, (1, BATCH)), "a time and at least one batch"),
        ((DATA, 1, 1, 1, (7.0, BATCH[:-1])), "seven fields"),
        ((DATA, 1, 1, 1, (7.0, changed(0, (3, 1)))), "a root is three integers"),
        ((DATA, 1, 1, 1, (7.0, changed(0, (3, 1, True)))), "a root is three integers"),
        ((DATA, 1, 1, 1, (7.0, changed(3, "ab"))), "sequences or arrays"),
        ((DATA, 1, 1, 1, (7.0, changed(4, (1,)))), "have one length"),
        ((DATA, 1, 1, 1, (7.0, changed(5, 7))), "its due time is a float"),
        ((DATA, 1, 1, 1, (7.0, changed(6, ("x",)))), "row ids are one for each row"),
        ((ACK, 1, 1, 1, None), "ACK is a sequence"),
        ((REGISTER, 1, 1, 1, ((ROOT, 1),)), "REGISTER is a sequence of roots with numbers"),
        ((MARK, 1, 1, 1, (((3, 1), 1),)), "MARK is a sequence of roots with numbers"),
        ((ACK, 1, 1, 1, ((ROOT, 1, "1"),)), "ACK is a sequence of roots with numbers"),
    ],
)
def test_what_is_no_frame_is_told_of(frame, told):
    with pytest.raises(FrameError, match=told):
        decoded(frame)


def test_what_is_one_is_read_as_it_was_sent():
    assert decoded((END, 2, 9, 4, None)) == (END, 2, 9, 4, None)
    assert decoded((ACK, 1, 2, 3, ((ROOT, 5, 6),))).body == ((ROOT, 5, 6),)
    assert decoded((DATA, 1, 2, 3, (7.0, BATCH))).body == (7.0, [BATCH])


def test_bytes_that_nobody_packed_are_no_frame():
    for data in (b"", b"\xc1", b"\x00" * 40):
        with pytest.raises(FrameError):
            decode(data, Codec())


def test_rows_that_are_plain_go_under_a_short_head_and_a_cut_one_is_refused():
    codec = Codec()
    data = encode_plain(codec, 1, 2, 3, 7.0, [BATCH])
    assert data is not None
    assert decode(data, codec) == (DATA, 1, 2, 3, (7.0, [BATCH]))
    with pytest.raises(FrameError, match="has a head"):
        decode(data[:6], codec)
    for cut in (len(data) - 1, len(data) - 5):
        with pytest.raises(FrameError):
            decode(data[:cut], codec)
