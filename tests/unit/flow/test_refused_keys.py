"""What cannot be a key is refused in the same words, however wide the unit behind it is, whatever brings it there."""

from __future__ import annotations

import enum
import itertools
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import BatchBolt, Bolt, Columns, EndOfStream, Spout, Topology, TopologyFailed, by_key, partial_key, shuffle
from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route_factory import route
from esault.messages.settings import Settings
from esault.routing.ring import MAX_KEY_DEPTH, check_key
from esault.routing.table import OutputTable
from esault.testing import LocalRuntime
from esault.topology.plan import Edge
from esault.windows import TumblingWindow


class Name(str):
    pass


class Level(enum.IntEnum):
    TWO = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Card:
    suit: str


def nested(depth):
    key = 7
    for _ in range(depth):
        key = (key,)
    return key


#: what comes before -> what is no key -> what is said of it. Some of them Python takes for equal to the key before
BAD = [
    ("a", None, "a tuple without a key (None), but what follows is grouped by key; emit a key, or put key_by(...)"),
    (2, 2.0, "the key 2.0 of type float: float cannot be a key"),
    (2, 1.5, "the key 1.5 of type float: float cannot be a key"),
    (2, float("nan"), "the key nan of type float: float cannot be a key"),
    (2, np.int64(2), "numpy.int64 cannot be a key"),
    (2, Decimal(2), "the key Decimal('2') of type decimal.Decimal: decimal.Decimal cannot be a key"),
    (2, Level.TWO, "Level cannot be a key"),
    ("a", np.str_("a"), "numpy.str_ cannot be a key"),
    ("a", Name("a"), "the key 'a' of type Name: Name cannot be a key"),
    (("a", 1), ["a", 1], "the key ['a', 1] of type list: list cannot be a key"),
    ((1, 2), Point(1, 2), "Point cannot be a key"),
    ("a", {"a"}, "the key {'a'} of type set: set cannot be a key"),
    ("a", {"a": 1}, "the key {'a': 1} of type dict: dict cannot be a key"),
    (b"a", bytearray(b"a"), "bytearray cannot be a key"),
    ("a", date(2020, 1, 1), "datetime.date cannot be a key"),
    ("a", Card("hearts"), "Card cannot be a key"),
    ("a", object(), "object cannot be a key"),
    (("a", 2), ("a", 2.0), "the key ('a', 2.0) of type tuple: float at key[1] cannot be a key"),
    (("a", 2), ("a", ["b"]), "the key ('a', ['b']) of type tuple: list at key[1] cannot be a key"),
    (("a", (2,)), ("a", (Level.TWO,)), "Level at key[1][0] cannot be a key"),
    ("a", nested(MAX_KEY_DEPTH + 1), "a key nests tuples more than 32 deep"),
]  # fmt: skip
WIDTHS = [1, 8]


class Channel:
    queue = ()

    def __init__(self):
        self.rows = 0

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += len(keys)

    def add_whole(self, lineage, input, rows, keys, values, ids, now):
        self.rows += rows


def made(grouping, owners):
    each = route("words", Edge("count", 0, grouping), 64)
    table = OutputTable.even(list(range(owners)))
    channels = {owner: Channel() for owner in table.owners()}
    each.install(table, channels)
    return each, channels


def pushed(grouping, owners, keys, arrays):
    """How many rows went, or what was said."""
    each, channels = made(grouping, owners)
    try:
        if arrays:
            each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(keys, np.arange(len(keys))), None, 0.0)
        else:
            each.push(Lineage((1, 1, 0), 0.0), keys, list(range(len(keys))), None, 0.0)
    except PayloadError as error:
        return str(error)
    return sum(channel.rows for channel in channels.values())


@pytest.mark.parametrize(("good", "bad", "said"), BAD, ids=lambda each: type(each).__name__)
def test_a_route_refuses_it_in_one_set_of_words_and_sends_nothing(good, bad, said):
    for owners, grouping, arrays in itertools.product(WIDTHS, [by_key, partial_key], [False, True]):
        answer = pushed(grouping(), owners, [good, good, bad, good], arrays)
        case = (answer, owners, grouping.__name__, arrays)
        assert str(answer).startswith("unit 'words' emitted a tuple with"), case
        assert said in answer, case
        assert re.search(r"; (use|emit) ", answer), case
        assert answer == pushed(by_key(), 1, [bad], False), case


@pytest.mark.parametrize("grouping", [by_key, partial_key])
@pytest.mark.parametrize("owners", WIDTHS)
@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["a", None]),
        pa.array([1, None]),
        pa.nulls(2),
        pa.array(["a", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
    ],
)
def test_a_null_of_arrow_is_refused_as_none_is(keys, owners, grouping):
    assert pushed(grouping(), owners, keys, True) == pushed(by_key(), 1, [None], False)


@pytest.mark.parametrize("owners", WIDTHS)
def test_what_a_dictionary_of_arrow_holds_beside_its_keys_does_not_matter(owners):
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", None]))
    assert pushed(by_key(), owners, keys, True) == 2


@pytest.mark.parametrize("owners", WIDTHS)
def test_a_tuple_that_leaves_no_room_for_the_name_of_its_half_is_refused_with_the_remedy(owners):
    keys = [nested(MAX_KEY_DEPTH)]
    assert pushed(by_key(), owners, keys, False) == 1
    said = (
        "unit 'words' emitted a tuple whose key cannot be a key here: a key nests tuples more than 32 deep; use a flat"
    )
    assert pushed(partial_key(), owners, keys, False).startswith(said)


@pytest.mark.parametrize("arrays", [False, True], ids=["rows", "arrays"])
def test_a_text_that_has_no_utf_8_is_refused_by_the_route_or_the_channel(arrays):
    for grouping in (by_key, partial_key):
        answer = pushed(grouping(), 8, ["a", "\udc80"], arrays)
        assert answer.startswith(
            "unit 'words' emitted a tuple with the key '\\udc80' of type str: key '\\udc80' holds a lone"
        )


SCALARS = st.one_of(st.text(max_size=3), st.binary(max_size=3), st.integers(-2, 2), st.booleans())
ANY = st.recursive(
    st.one_of(SCALARS, st.none(), st.floats(width=16), st.just(Name("a")), st.just(Level.TWO)),
    lambda each: st.one_of(st.lists(each, max_size=3).map(tuple), st.lists(each, max_size=2)),
    max_leaves=6,
)


@given(st.lists(ANY, min_size=1, max_size=6), st.sampled_from(WIDTHS), st.sampled_from([by_key, partial_key]))
def test_all_keys_go_if_and_only_if_each_of_them_can_be_one(keys, owners, grouping):
    def can_be(key):
        try:
            check_key(key)
        except PayloadError:
            return False
        return key is not None

    first = next((key for key in keys if not can_be(key)), ...)
    expected = len(keys) if first is ... else pushed(by_key(), 1, [first], False)
    assert pushed(grouping(), owners, keys, False) == expected


# on LocalRuntime ---------------------------------------------------------------------------------

#: nothing is looked at where it is emitted, as it is behind the first emits of a run
UNCHECKED = Settings(checked_emits=0, watch_values=False)


class Reads(Spout):
    def __init__(self, keys, columns):
        self.keys, self.columns = keys, columns

    def read(self, limit):
        if self.keys is None:
            raise EndOfStream
        keys, self.keys = self.keys, None
        return Columns(keys, list(range(len(keys)))) if self.columns else [(key, 0) for key in keys]


def emitting(key):
    class Emits(Bolt):
        def process(self, _, value):
            self.emit(key, value)

    class Batches(BatchBolt):
        def process_batch(self, rows):
            self.emit_batch([(key, value) for _, value in rows])

    class Cols(BatchBolt):
        def process_columns(self, keys, values):
            self.emit_columns([key] * len(keys), np.arange(len(keys)))

    class Waits(Bolt):
        async def process(self, _, value):
            self.emit(key, value)

    return {"bolt": Emits, "batches": Batches, "columns": Cols, "async": Waits}


class Takes(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class TakesColumns(BatchBolt):
    def process_columns(self, keys, values):
        self.keyed.update(zip(keys, values))


class TakesLater(Bolt):
    async def process(self, key, value):
        self.emit(key, value)


def behind(stream, receiver, width):
    if receiver == "window":
        stream.window("worker", Takes, TumblingWindow(10), time=float, lateness=0, parallelism=width)
    else:
        bolt = {"bolt": Takes, "columns": TakesColumns, "async": TakesLater, "partial": Takes}[receiver]
        grouping = partial_key() if receiver == "partial" else by_key()
        stream.bolt("worker", bolt, grouping, parallelism=width)


def failed(topology):
    with pytest.raises(TopologyFailed) as caught:
        LocalRuntime(topology, settings=UNCHECKED).run_until_drained(60.0)
    return str(caught.value).splitlines()[0]


WAYS = ["rows", "columns of a spout", "key_by", "bolt", "batches", "columns", "async"]
RECEIVERS = ["bolt", "columns", "async", "partial", "window"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("way", "receiver"), [*[(way, "bolt") for way in WAYS], *[("bolt", each) for each in RECEIVERS]]
)
@pytest.mark.parametrize("bad", [None, 2.5, ["a"], Card("hearts"), ("a", 1.5), Level.TWO, "\udc80"], ids=repr)
def test_a_run_ends_with_the_first_of_them_whatever_sends_and_takes_it(bad, way, receiver, width):
    t = Topology("refusing")
    if way == "key_by":
        sent = t.spout("rows", Reads(["a"], False)).key_by(lambda value: bad)
    elif way in ("rows", "columns of a spout"):
        sent = t.spout("rows", Reads([bad, bad], way != "rows"))
    else:
        sent = t.spout("start", Reads(["a", "b"], False)).bolt("rows", emitting(bad)[way], shuffle())
    behind(sent, receiver, width)
    if isinstance(bad, str):
        said = "unit 'rows' emitted a tuple with the key '\\udc80' of type str: key '\\udc80' holds a lone surrogate"
        assert failed(t).startswith(said)
    else:
        assert failed(t) == pushed(by_key(), 1, [bad], False).replace("'words'", "'rows'")


def through(keys, grouping, width):
    t = Topology("small")
    t.spout("rows", Reads(keys, False)).bolt("worker", Takes, grouping, parallelism=width)
    local = LocalRuntime(t, settings=UNCHECKED)
    local.run_until_drained()
    return local.emitted("worker")


def test_a_tuple_without_a_key_goes_where_none_matters():
    assert through([None, None], shuffle(), 1) == [(None, 0), (None, 0)]


def test_a_bolt_gets_keys_of_all_kinds_at_any_width():
    keys = ["a", "", b"a", 0, 1, True, False, -(2**70), (), ("a", None), (1, (True, b""))]
    for width in WIDTHS:
        got = through(keys, by_key(), width)
        assert sorted(map(repr, got)) == sorted(repr((key, 0)) for key in keys)
