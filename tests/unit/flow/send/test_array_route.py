"""Routes of arrays: each row goes where it would go as a row, with its value and its id, in order; arrays stay arrays."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esault
from esault import Grouping, broadcast, by_key, partial_key
from esault.errors import PayloadError
from esault.flow.channel import array_batch
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import MAX_BATCH_ROWS
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route_factory import route
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

codec = Codec()


class Channel:
    """Reads what it is given as a receiver would."""

    def __init__(self):
        self.rows, self.kinds, self.sizes, self.queue = [], set(), [], ()

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += zip(keys, values, ids or values)

    def add_whole(self, lineage, input, rows, keys, values, ids, now):
        keys, values = codec.unpack(codec.pack((keys, values)))
        assert rows == len(keys) == len(values) <= MAX_BATCH_ROWS
        self.kinds.add((type(keys).__name__, type(values).__name__))
        self.sizes.append(rows)
        self.rows += zip(plain(keys), plain(values), ids or plain(values))


class ByParity(Grouping):
    def choose(self, key, value, sub_units):
        return value % sub_units


def made(grouping, owners, cache=64):
    table = OutputTable.even(list(range(owners)))
    each = route("words", Edge("count", 0, grouping), cache)
    channels = {owner: Channel() for owner in table.owners()}
    each.install(table, channels)
    return each, channels


def as_rows(grouping, owners, keys, values, ids):
    each, channels = made(grouping, owners)
    each.push(Lineage((1, 1, 0), 0.0), keys, values, ids, 0.0)
    return {owner: channel.rows for owner, channel in channels.items()}


def as_arrays(grouping, owners, keys, values, ids):
    each, channels = made(grouping, owners)
    each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(keys, values), ids, 0.0)
    return {owner: channel.rows for owner, channel in channels.items()}, channels


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
KEYS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(np.array),
    st.lists(st.integers(0, 70_000), min_size=1).map(lambda k: np.array(k, "u8")),
    st.lists(st.integers(0, 2**64 - 1), min_size=1).map(lambda k: np.array(k, "u8")),
    st.lists(st.integers(0, 300), min_size=1).map(lambda k: np.array(k, ">u2")),
    st.lists(st.integers(-128, 127), min_size=1).map(lambda k: np.array(k, "i1")),
    st.lists(st.integers(0, 9), min_size=3).map(lambda k: np.array(k)[::2]),
    st.lists(st.booleans(), min_size=1).map(np.array),
    st.lists(TEXT, min_size=1).map(lambda k: np.array(k, "U5")),
    st.lists(st.binary(max_size=4), min_size=1).map(lambda k: np.array(k, "S4")),
    st.lists(st.integers(-9, 2**40), min_size=1).map(lambda k: pa.array(k, pa.int64())),
    st.lists(st.integers(0, 2**16 - 1), min_size=3).map(lambda k: pa.array(k, pa.uint16())[2:]),
    st.lists(st.booleans(), min_size=1).map(lambda k: pa.array(k, pa.bool_())),
    st.lists(TEXT, min_size=1).map(lambda k: pa.array(k, pa.string())),
    st.lists(TEXT, min_size=1).map(lambda k: pa.array(k, pa.large_string()).dictionary_encode()),
    st.lists(st.binary(min_size=2, max_size=2), min_size=1).map(lambda k: pa.array(k, pa.binary(2))),
    st.lists(st.one_of(TEXT, st.integers(), st.booleans(), st.tuples(st.integers(0, 1))), min_size=1),
)  # fmt: skip
VALUES = [
    np.arange,
    lambda n: pa.array(range(n)),
    lambda n: pa.record_batch({"a": list(range(n))}),
]


@settings(max_examples=400, deadline=None)
@given(
    KEYS,
    st.sampled_from(VALUES),
    st.sampled_from([1, 2, 7, 300]),
    st.booleans(),
    st.sampled_from([by_key, partial_key]),
)
def test_every_row_goes_where_it_would_go_as_a_row(keys, values, owners, named, grouping):
    values = values(len(keys))
    ids = [f"id-{i}" for i in range(len(keys))] if named else None
    want = as_rows(grouping(), owners, plain(keys), plain(values), ids)
    assert as_arrays(grouping(), owners, keys, values, ids)[0] == want


@settings(max_examples=50, deadline=None)
@given(KEYS)
def test_all_goes_well_where_there_is_no_numpy(keys):
    """Of Arrow and lists; the values are Arrow's."""
    if isinstance(keys, np.ndarray):
        return
    values = pa.array(range(len(keys)))
    want = as_rows(by_key(), 3, plain(keys), plain(values), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_batch, "loaded", lambda name: None if name == "numpy" else sys.modules.get(name))
        assert as_arrays(by_key(), 3, keys, values, None)[0] == want


@pytest.mark.parametrize("grouping", [ByParity(), broadcast()])
@pytest.mark.parametrize(
    "keys", [np.arange(9), pa.array(list("abcdefghi")), list(range(9))], ids=["numpy", "arrow", "list"]
)
def test_other_groupings_do_with_arrays_as_with_rows(grouping, keys):
    for named in (None, [f"id-{i}" for i in range(9)]):
        want = as_rows(grouping, 2, plain(keys), list(range(9)), named)
        assert as_arrays(grouping, 2, keys, np.arange(9), named)[0] == want


@pytest.mark.parametrize("owners", [1, 2])
def test_arrays_stay_arrays_and_are_cut_into_batches(owners):
    n = 3 * MAX_BATCH_ROWS + 5
    order = random.Random(1)
    keys = np.array([order.randrange(50) for _ in range(n)])
    _, channels = as_arrays(by_key(), owners, keys, np.arange(n), None)
    assert {kind for channel in channels.values() for kind in channel.kinds} == {("ndarray", "ndarray")}
    if owners == 1:
        assert channels[0].sizes == [MAX_BATCH_ROWS] * 3 + [5]


def test_the_owner_of_a_key_is_asked_for_once():
    each, _ = made(by_key(), 2)
    asked = []
    cache = each._cache
    for keys in (np.array([5, 7, 5, 9]), np.array([9, 5, 5, 11])):
        each._numbers._owner = lambda key: asked.append(key) or cache[key]
        each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(keys, keys), None, 0.0)
    assert asked == [5, 7, 9, 11]
    assert all(type(key) is int for key in asked)


def test_a_new_table_asks_anew():
    each, _ = made(by_key(), 2)
    keys = np.arange(50)
    each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(keys, keys), None, 0.0)
    table = OutputTable.even([1, 0])
    channels = {owner: Channel() for owner in (0, 1)}
    each.install(table, channels)
    each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(keys, keys), None, 0.0)
    before = as_arrays(by_key(), 2, keys, keys, None)[0]
    assert channels[0].rows == before[1]
    assert channels[1].rows == before[0]


@pytest.mark.parametrize(
    "keys",
    [pa.array([1, None]), pa.array(["a", None]), pa.nulls(2), pa.array(["a", None]).dictionary_encode(), [1, None]],
)
def test_a_null_is_a_missing_key(keys):
    with pytest.raises(PayloadError, match=r"unit 'words' emitted a tuple without a key .*put key_by"):
        as_arrays(by_key(), 2, keys, np.arange(2), None)


def test_keys_in_a_list_that_cannot_be_keys_are_named():
    with pytest.raises(PayloadError, match=r"unit 'words'.*\[1\] of type list"):
        as_arrays(by_key(), 2, ["a", [1]], np.arange(2), None)
    with pytest.raises(PayloadError, match=r"unit 'words'.*float cannot be a key"):
        as_arrays(by_key(), 2, ["a", 1.5], np.arange(2), None)


def test_arrow_is_divided_without_loading_pandas():
    """Which takes 50 MB in each process, and half a second."""
    code = (
        "import sys, numpy as np, pyarrow as pa; from array import array;"
        "from esault.flow.channel.array_batch import ArrayBatch, Numbers; from esault.payload.column import take, checked, plain;"
        "from esault.payload.column_wire import wired, read_arrow;"
        "numbers = pa.Array.from_buffers(pa.int64(), 4, [None, pa.py_buffer(array('q', [5, 6, 7, 8]))]);"
        "text = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(array('i', [0, 1, 2])), pa.py_buffer(b'ab')]);"
        "owner = lambda key: 5 == key or key == 'a';"
        "[list(ArrayBatch(keys, keys).divided(Numbers(owner).of(keys), None)) for keys in (numbers, text)];"
        "plain(read_arrow(wired(checked(text, 'keys')).data)), take(text, array('q', [1]));"
        "print('pandas' in sys.modules)"
    )
    root = str(Path(esault.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
