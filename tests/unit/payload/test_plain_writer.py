"""The quick writer of plain values, over many of them: what one leaves behind must not meet the next."""

from __future__ import annotations

import pytest

from esault.payload.codec import Codec


@pytest.mark.parametrize("many", [1, 7, 120])
def test_any_number_of_frozensets_travel(many):
    codec = Codec()
    for i in range(300):
        row = {"n": i, "tags": [frozenset({i, each}) for each in range(many)]}
        data = codec.pack_plain((row,), b"head")
        if data is None:  # so many in one value are no plain ones
            assert many > 50
            assert codec.unpack(codec.pack_value((row,))) == (row,)
        else:
            assert codec.unpack_plain(data, 4) == (row,)


def test_what_contains_itself_does_not_meet_what_comes_behind_it():
    codec = Codec()
    for _ in range(100):
        ring: list[object] = []
        ring.append([ring])
        assert codec.pack_plain(ring, b"") is None
        row = [[[1, frozenset("a")]]]
        data = codec.pack_plain(row, b"")
        assert data is not None
        assert codec.unpack_plain(data, 0) == row
