"""Texts that stand in many rows travel once, whatever else is in the rows, and nothing else is shared for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import decode, encode_plain
from esault.payload.codec import Codec
from esault.payload.shared_texts import shared_texts

POOL = ["a" * 30, "b" * 30, "c", "", "\u00e9" * 9]
#: the same objects again and again, and such as say the same
KEYS = st.sampled_from(POOL) | st.builds(str.upper, st.sampled_from(POOL)) | st.none() | st.integers() | st.booleans()
ROWS = st.lists(st.tuples(KEYS, st.dictionaries(KEYS, st.lists(KEYS, max_size=2), max_size=3) | KEYS), min_size=1)


def sent(batches, codec):
    rows = [((1, 2, 3), 4, 0, keys, values, 1.0, None) for keys, values in batches]
    data = encode_plain(codec, 1, 2, 3, 7.0, rows, shared_texts(batches))
    assert data is not None
    return data, [(batch.keys, batch.values) for batch in decode(data, codec).body[1]]


@given(st.lists(st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=3), max_size=3))
def test_rows_come_as_they_went(frames):
    codec = Codec()
    for frame in frames:
        batches = [tuple(map(tuple, zip(*[row for rows in batch for row in rows]))) for batch in [frame[0], *frame[1:]]]
        _, came = sent(batches, codec)
        assert repr(came) == repr(batches)


def test_a_key_of_many_rows_travels_once_and_is_one_object():
    name = "folder/" * 20
    keys, values = (name,) * 40 + ("other",) * 40, tuple(range(80))
    data, [(came, numbers)] = sent([(keys, values)], Codec())
    assert data.count(name.encode()) == 1
    assert (came, numbers) == (keys, values)
    assert len(set(map(id, came))) == 2


def test_names_of_fields_travel_once_and_rows_share_nothing_that_changes():
    inner = [1]
    values = tuple({"a long name of a field": i, "inner": inner} for i in range(50))
    data, [(_, came)] = sent([((None,) * 50, values)], Codec())
    assert data.count(b"a long name of a field") == 1
    assert came == values
    came[0]["inner"].append(2)
    assert came[1]["inner"] == [1]


def test_one_frame_leaves_nothing_behind_for_the_next():
    codec = Codec()
    name = "n" * 50
    first, _ = sent([((name,) * 40, tuple(range(40)))], codec)
    again, _ = sent([((name,) * 40, tuple(range(40)))], codec)
    assert first == again
    _, [(keys, _)] = sent([((name, "x", "y"), (1, 2, 3))], codec)
    assert keys == (name, "x", "y")


def test_keys_that_are_not_worth_it_are_left():
    numbers = tuple(range(64))
    assert shared_texts([(tuple(map(str, numbers)), numbers)]) == []
    assert shared_texts([((None,) * 64, numbers)]) == []
    assert shared_texts([((1,) * 64, numbers)]) == []
    assert shared_texts([(("one",), ({"a": 1},))]) == []
    few = ("a" * 9,) * 2 + tuple(map(str, numbers))
    assert shared_texts([(few, (*numbers, 1, 2))]) == []
