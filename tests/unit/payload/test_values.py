"""Values and state: what is packed comes back with its type and value, and what cannot travel is refused with a remedy."""

from __future__ import annotations

import asyncio
import collections
import datetime
import operator
import socket
import string
import sys
import threading
import typing
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import FrameError, PayloadError
from esault.payload import class_names
from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from tests.unit.payload import kinds
from tests.unit.payload.kinds import NAMED, canon

codec = Codec()


def as_value(value):
    return codec.unpack(codec.pack_value(value))


def as_state(value):
    return codec.unpack(codec.pack_value({"it": value, "beside": [1]}))["it"]


def as_row(value):
    return codec.unpack(codec.pack(Rows([value])))[0]


def as_one_of_many(value):
    return codec.unpack(codec.pack(Rows([value] * 40)))[7]


def within(value):
    return as_value({"a": [(value, {"b": value})]})["a"][0][1]["b"]


WAYS = [as_value, as_state, as_row, as_one_of_many, within]


@pytest.mark.parametrize("name", NAMED)
def test_a_value_comes_back_with_its_type_and_value(name):
    value = NAMED[name]
    for way in WAYS:
        assert canon(way(value)) == canon(value), way.__name__


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5), st.binary(max_size=5),
    st.binary(max_size=3).map(bytearray), st.complex_numbers(), st.decimals(), st.datetimes(), st.fractions(), st.uuids(),
    st.sampled_from(list(kinds.Color)), st.builds(kinds.D, st.integers(), st.lists(st.integers(), max_size=2)),
)  # fmt: skip
hashable = st.one_of(
    st.integers(), st.text(max_size=3), st.booleans(), st.none(), st.tuples(st.integers(), st.text(max_size=2))
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=3), st.frozensets(hashable, max_size=3), st.builds(kinds.Plain, inner), st.builds(kinds.N, inner),
        st.lists(inner, max_size=3).map(lambda items: kinds.collections.deque(items, 5)),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(values)
def test_any_value_comes_back_as_it_was(value):
    assert canon(as_value(value)) == canon(value)


columns = st.one_of(
    st.lists(values, max_size=9),
    st.lists(st.dictionaries(st.sampled_from("ab"), scalars, max_size=2), min_size=4, max_size=40),
    st.lists(st.builds(kinds.D, scalars, st.lists(scalars, max_size=2)), min_size=4, max_size=40),
    st.lists(st.builds(kinds.N, scalars, scalars), min_size=4, max_size=40),
    st.lists(st.builds(kinds.F, scalars, st.builds(kinds.D, scalars)), min_size=4, max_size=40),
    st.lists(scalars, min_size=33, max_size=50),
)


@settings(max_examples=300, deadline=None)
@given(columns)
def test_any_column_of_rows_comes_back_as_it_was(rows):
    assert canon(codec.unpack(codec.pack(Rows(rows)))) == canon(tuple(rows))


@pytest.mark.parametrize(
    "make", [lambda x: x, lambda x: {"a": x}, lambda x: (x,), kinds.Plain, lambda x: kinds.D(1, x)]
)
def test_rows_share_nothing_that_can_be_changed(make):
    same = [1]
    rows = codec.unpack(codec.pack(Rows([make(same) for _ in range(50)])))
    inner = [next(iter(r.values())) if isinstance(r, dict) else r[0] if isinstance(r, tuple) else r for r in rows]
    inner = [getattr(r, "a", None) if isinstance(r, kinds.Plain) else getattr(r, "b", r) for r in inner]
    assert len({id(each) for each in inner}) == 50


@pytest.mark.parametrize(
    "key", [kinds.Hashed(1), (1, kinds.Hashed(1)), frozenset([kinds.Hashed(1)])], ids=["object", "tuple", "set"]
)
def test_rows_do_not_share_objects_that_are_keys_of_their_dicts(key):
    rows = codec.unpack(codec.pack(Rows([{key: kinds.Color.RED, "b": i} for i in range(5)])))
    assert len({id(next(iter(row))) for row in rows}) == 5
    assert [row["b"] for row in rows] == list(range(5))


@pytest.mark.parametrize(
    "shared", [[1], {"a": 1}, {1}, bytearray(b"a"), kinds.D(1), kinds.Plain(1), kinds.collections.deque([1])]
)
def test_what_stands_twice_in_a_state_is_one_object(shared):
    state = codec.unpack(codec.pack_value({"a": shared, "b": [shared], "c": {1: (shared,)}}))
    assert state["a"] is state["b"][0] is state["c"][1][0]


@pytest.mark.parametrize("member", [*kinds.Way, *kinds.Limit], ids=str)
def test_members_of_an_enum_are_themselves_whatever_their_values_are(member):
    for way in WAYS:
        assert way(member) is member, way.__name__


def test_a_member_that_is_gone_is_named():
    data = codec.pack_value([kinds.Way.DOUBLED]).replace(b"DOUBLED", b"TREBLED")
    with pytest.raises(FrameError, match="'TREBLED' is no member of 'Way'"):
        codec.unpack(data)


def test_classes_are_named_by_what_is_read_too():
    data = codec.pack_value([kinds.D(1, [])])
    class_names.forget()
    assert kinds.D not in class_names.named()
    codec.unpack(data)
    assert kinds.D in class_names.named()


def test_what_contains_itself_travels():
    loop: list = [1]
    loop.append(loop)
    for back in (as_value(loop), as_row(loop), as_one_of_many(loop)):
        assert back[1] is back
    one, other = kinds.Plain(None), kinds.Plain(None)
    one.a, other.a = other, one
    back = as_value(one)
    assert back.a.a is back


class Tally(collections.Counter):
    """With attributes, as the other two."""


class Lists(collections.defaultdict):
    pass


class Sorted(collections.OrderedDict):
    pass


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("make", [lambda: Tally("aab"), lambda: Lists(list, {1: [2]}), lambda: Sorted(b=1, a=2)])
def test_a_dict_of_the_users_own_keeps_its_attributes(make, way):
    value = make()
    value.note = [1]
    back = way(value)
    assert type(back) is type(value)
    assert list(back.items()) == list(value.items())
    assert vars(back) == {"note": [1]}
    assert getattr(back, "default_factory", None) is getattr(value, "default_factory", None)


@pytest.mark.parametrize(
    "make", [collections.Counter, Tally, lambda: collections.defaultdict(list), lambda: Lists(list)]
)
def test_a_dict_of_any_kind_may_stand_in_itself(make):
    value = make()
    value["me"] = value
    back = as_state(value)
    assert type(back) is type(value)
    assert back["me"] is back


class Owner:
    def __init__(self):
        self.me = self
        self.call = {"hello": self.hello}

    def hello(self):
        return self


def test_a_state_may_hold_its_own_object_and_its_methods():
    owner, fresh = Owner(), Owner()
    state = codec.unpack(codec.pack_value(vars(owner), owner), fresh)
    assert state["me"] is fresh
    assert state["call"]["hello"]() is fresh


async def _coroutine():
    """Never awaited."""


def _generator():
    yield 1


def refused():
    yield "lambda", lambda: 1, "a lambda cannot travel; write a function at the top of the file"
    yield "file", sys.__stderr__, "open it in open\\(context\\), and keep its path"
    yield "lock", threading.Lock(), "make it in open\\(context\\)"
    yield "generator", _generator(), "use list\\(value\\['x'\\]\\[0\\]\\)"
    yield "module", sys, "a module cannot travel; import it where it is used"
    yield "memoryview", memoryview(b"a"), "use bytes\\(value\\['x'\\]\\[0\\]\\)"
    yield "method of a type", str.upper, "write a function at the top of the file, by `def`"
    yield "getter", operator.itemgetter(1), "write a function at the top of the file, by `def`"
    yield "type of typing", typing.ClassVar, r"'ClassVar' of its module.*say Topology\(\.\.\., types=\('typing',\)\)"
    yield "local class", _local(), "is defined inside a function, where other processes cannot find it"
    yield "iterator of zip", zip("ab"), "use list"
    yield "other package's class", pytest.approx(1), r"vouch for it: Topology\(\.\.\., types=\('_pytest',\)\)"
    yield "class of the library", string.Template("a"), r"vouch for it: Topology\(\.\.\., types=\(Template,\)\)"
    yield "class of Python itself", object, r"is a class of builtins.*or make it in open\(context\)$"
    yield "function of NumPy", np.mean, "code does not travel: numpy.mean"
    yield "ufunc of NumPy", np.add, "code does not travel: numpy.add"
    yield "function of the library", threading.current_thread, "code does not travel: threading"


def _local():
    class Local:
        pass

    return Local()


@pytest.mark.parametrize(("thing", "message"), [case[1:] for case in refused()], ids=[case[0] for case in refused()])
def test_what_cannot_travel_is_refused_with_place_and_remedy(thing, message):
    with pytest.raises(PayloadError, match=r"at value\['x'\]\[0\](:| cannot travel).*" + message):
        codec.pack_value({"x": [thing]})
    assert as_value("after a refusal the codec works on") == "after a refusal the codec works on"


def test_a_socket_and_a_coroutine_are_refused_with_a_remedy():
    with socket.socket() as connection, pytest.raises(PayloadError, match=r"connect it in open\(context\)"):
        codec.pack_value([connection])
    waiting = _coroutine()
    with pytest.raises(PayloadError, match="await it first"):
        codec.pack_value([waiting])
    asyncio.run(waiting)


def test_the_place_goes_through_objects():
    with pytest.raises(PayloadError, match=r"at value\.d\.b\[0\]"):
        codec.pack_value(kinds.F(1, kinds.D(1, [lambda: 1])))


def test_what_is_nested_too_deeply_is_refused_and_a_deep_one_travels():
    deep: list = []
    for _ in range(300):
        deep = [deep]
    assert as_value(deep) == deep
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadError, match="nested too deeply"):
        codec.pack_value(deep)
    while deep:
        deep = deep[0]


def test_packages_and_classes_that_are_vouched_for_travel():
    value = pytest.approx(1)
    with pytest.raises(PayloadError):
        codec.pack_value(value)
    class_names.vouch(("_pytest",))
    try:
        assert type(as_value(value)) is type(value)
    finally:
        class_names._vouched_packages.discard("_pytest")
        class_names.vouch(())
    with pytest.raises(PayloadError):
        codec.pack_value(value)


class Gone:
    """Stands for a class that has another name today."""


def test_frozen_times_of_a_users_tests_travel(monkeypatch):
    library = ModuleType("freezegun.api")
    for base in (datetime.date, datetime.datetime):
        name = f"Fake{base.__name__.capitalize()}"
        vars(library)[name] = type(name, (base,), {"__module__": library.__name__})
    for module in (ModuleType("freezegun"), library):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for value in (library.FakeDate(2026, 3, 1), library.FakeDatetime(2026, 3, 1, tzinfo=datetime.timezone.utc)):
        for way in WAYS:
            assert way(value) == value and type(way(value)) is type(value)


def test_a_class_that_moved_is_found_by_its_old_name():
    packed = (
        codec.pack_value(kinds.D(5, [1]))
        .replace(b"tests.unit.payload.kinds", b"tests.unit.payload.kinfs")
        .replace(b"\x8c\x01D", b"\x8c\x01Q")
    )
    with pytest.raises(FrameError):
        codec.unpack(packed)
    class_names.vouch((), [("tests.unit.payload.kinfs.Q", kinds.D)])
    try:
        assert codec.unpack(packed) == kinds.D(5, [1])
    finally:
        class_names._moved.clear()
        class_names.vouch(())


def test_flat_lists_and_dicts_of_state_are_messagepack_and_exactly_what_they_were():
    codec, same = Codec(), [1, 2]
    for state in ({"seen": [1, True, 2.0, "x", b"y", None]}, {"n": 1, "counts": {"a": 1, 2: "b", None: 3.5}}):
        data = codec.pack_value(state)
        assert data[:2] == b"\xc1L"
        assert repr(codec.unpack(data)) == repr(state)
    for state in (
        {"a": [bytearray(b"x")]},
        {"a": [(1, 2)]},
        {"a": [[1]]},
        {"a": [2**70]},
        {"a": {(1, 2): 3}},
        {"a": ["\ud800"]},
    ):
        data = codec.pack_value(state)
        assert data[:2] != b"\xc1L"
        assert repr(codec.unpack(data)) == repr(state)
    twice = codec.unpack(codec.pack_value({"a": same, "b": same}))
    assert twice["a"] is twice["b"]
    apart = codec.unpack(codec.pack_value({"a": [1], "b": [1]}))
    assert apart["a"] is not apart["b"]


class Own:
    """Is in a set of its own."""

    def __init__(self):
        self.name = "own"
        self.peers = {self}

    def __hash__(self):
        return hash(self.name)


class Wants:
    """Wants back what it has not given."""

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        self.b = state["b"]


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            Own(),
            r"__hash__, test_values\.py:\d+ raised AttributeError .*'name'; an object that is in a set of its own, or a key",
        ),
        (Wants(), r"__setstate__, test_values\.py:\d+ raised KeyError when a value was made again from its bytes: 'b'"),
    ],
    ids=["hash", "state"],
)
def test_the_users_own_code_that_raises_when_a_value_is_read_is_named(thing, message):
    with pytest.raises(FrameError, match=message):
        codec.unpack(codec.pack_value(thing))


@pytest.mark.parametrize(
    ("path", "cell", "own"),
    [
        ("/home/ann/.esault/notebook/orders.py", kinds.Plain, True),
        ("/home/ann/.esault/notebook/orders.py", "another thing by now", False),
        ("/home/ann/orders.py", kinds.Plain, False),
        (None, kinds.Plain, False),
    ],
    ids=["cell", "taken away", "file", "none"],
)
def test_classes_of_results_are_those_of_the_cells_that_they_were_written_from(monkeypatch, path, cell, own):
    main, file = ModuleType("__main__"), ModuleType("esault_topology_orders_1")
    written = type("Order", (), {"__module__": file.__name__})
    vars(main)["Order"], vars(file)["Order"] = cell, written
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setitem(sys.modules, file.__name__, file)
    class_names.forget()
    with class_names.as_script(path):
        assert class_names.find(file.__name__, "Order") is (cell if own else written)
    assert class_names.find(file.__name__, "Order") is written
    class_names.forget()
