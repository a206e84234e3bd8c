"""The route of `partial_key`: two elements share a key's tuples, and no other sub-unit gets any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import partial_key
from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.send.route_factory import route
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

codec = Codec()


class Channel:
    def __init__(self):
        self.rows, self.queue = [], ()

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += zip(plain(keys), plain(values), ids or plain(values))

    def add_whole(self, lineage, input, rows, keys, values, ids, now):
        keys, values = codec.unpack(codec.pack((keys, values)))
        self.add(lineage, input, keys, values, ids, now)


def made(count):
    table = OutputTable.even(list(range(count)))
    channels = [Channel() for _ in range(count)]
    each = route("words", Edge("count", 0, partial_key()), 64)
    each.install(table, dict(enumerate(channels)))
    return each, channels, table


keys = st.lists(st.sampled_from(["a", "b", "ü", "", 1, ("x", 2), b"y"]), min_size=1, max_size=60)


@given(keys, st.integers(1, 5), st.booleans())
def test_each_row_is_at_one_of_its_keys_two_elements(keys, count, arrays):
    each, channels, table = made(count)
    values = tuple(range(len(keys)))
    ids = tuple(map(str, values))
    if arrays:
        each.push_arrays(None, ArrayBatch(tuple(keys), values), ids, 0.0)
    else:
        each.push(None, tuple(keys), values, ids, 0.0)
    rows = [(number, *row) for number, channel in enumerate(channels) for row in channel.rows]
    assert sorted(value for _, _, value, _ in rows) == list(values)
    for number, (key, half), value, id in rows:
        assert key == keys[value] and half in ("0", "1") and id == str(value)
        assert table.owner(position((key, half))) == number


@given(st.integers(1, 6), st.integers(1, 50))
def test_the_two_share_one_hot_key_evenly(count, rows):
    each, channels, _ = made(count)
    for value in range(rows):
        each.push(None, ("hot",), (value,), None, 0.0)
    halves = [row[0][1] for channel in channels for row in channel.rows]
    assert abs(halves.count("0") - halves.count("1")) <= 1


@given(keys, st.integers(0, 40))
def test_a_restart_chooses_the_same_again(keys, turn):
    each, channels, _ = made(3)
    found = []
    for _ in range(2):
        each.restart(turn)
        for channel in channels:
            channel.rows.clear()
        each.push(None, tuple(keys), tuple(range(len(keys))), None, 0.0)
        found.append([list(channel.rows) for channel in channels])
    assert found[0] == found[1]


@pytest.mark.parametrize("key", [None, 1.5, {}, ["a"]])
def test_what_cannot_be_a_key_is_refused(key):
    each, channels, _ = made(2)
    with pytest.raises(PayloadError, match="'words'"):
        each.push(None, ("a", key), (1, 2), None, 0.0)
    assert not any(channel.rows for channel in channels)
