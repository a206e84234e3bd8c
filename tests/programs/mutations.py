"""Random values, what may be done to them in place, and how two states are told apart: by type, value, order and identity."""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import fractions
import functools
import ipaddress
import math
import pathlib
import types
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.programs import classes
from tests.unit.payload import kinds

#: never called, so it may be given what it does not take
MAKE_LIST: Callable[..., Any] = kinds.make_list
#: attributes of a random state
NAMES = ("a", "b", "c", "d")
#: items that one container holds at most
MOST = 6
ZONES = [
    zoneinfo.ZoneInfo("Europe/Rome"),
    zoneinfo.ZoneInfo("UTC"),
    dt.timezone.utc,
    dt.timezone(dt.timedelta(hours=5)),
]
TEXTS = ["", "a", "bb", "ü", "\ud800", "x" * 70]
DTYPES = ["i1", "i8", "u2", "f4", "f8", "c16", "?", "U3", "M8[ns]", "m8[s]"]
KEYS = [1, 2, -3, 2**65, True, None, 1.0, "a", "b", b"a", (1, "a"), (True,), 0.5, frozenset([1])]

# values -----------------------------------------------------------------------------------------------

_SCALARS = [
    lambda r: None,
    lambda r: r.random() < 0.5,
    lambda r: r.randint(-3, 3),
    lambda r: r.randint(0, 1 << 40),
    lambda r: r.randint(-(1 << 90), 1 << 90),
    lambda r: r.choice([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 1e300]),
    lambda r: complex(r.randint(0, 2), 1.5),
    lambda r: r.choice(TEXTS),
    lambda r: r.choice([b"", b"a", b"\xc1\x80"]),
    lambda r: dt.datetime(2020, 1, r.randint(1, 28), fold=r.randint(0, 1)),
    lambda r: dt.datetime(2020, 10, 25, 2, 30, fold=r.randint(0, 1), tzinfo=r.choice(ZONES)),
    lambda r: dt.date(2020, 1, r.randint(1, 28)),
    lambda r: dt.time(1, r.randint(0, 59), tzinfo=r.choice([None, dt.timezone.utc])),
    lambda r: dt.timedelta(r.randint(-9, 9), 1, r.randint(0, 9)),
    lambda r: r.choice(ZONES[:2]),
    lambda r: decimal.Decimal(r.choice(["1.50", "-0", "1E+9", "NaN", "0.10"])),
    lambda r: fractions.Fraction(r.randint(-9, 9), r.randint(1, 9)),
    lambda r: uuid.UUID(int=r.getrandbits(128)),
    lambda r: pathlib.Path("a") / str(r.randint(0, 9)),
    lambda r: r.choice([*kinds.Color, kinds.Lvl.LOW, kinds.Fl.A, kinds.Fl.A | kinds.Fl.B, kinds.Str.X]),
    lambda r: r.choice([np.float64, np.float32, np.int8, np.uint64])(r.randint(0, 9)),
    lambda r: r.choice([np.bool_(True), np.str_("a"), np.datetime64("2020-01-01"), np.datetime64("NaT", "s")]),
    lambda r: range(r.randint(0, 3), 10, 3),
    lambda r: frozenset([r.randint(2, 9), "a"]),
    lambda r: kinds.N(r.randint(0, 9)),
    lambda r: kinds.SF(r.randint(0, 9), "s"),
    lambda r: kinds.AF(r.randint(0, 9)),
    lambda r: kinds.MF(x=r.randint(0, 9)),
    lambda r: kinds.Rd(r.randint(0, 9)),
    lambda r: ipaddress.ip_address(r.getrandbits(32)),
    lambda r: r.choice([kinds.make_list, kinds.Plain, int, len, Ellipsis]),
]

#: slower than the rest, hence seldom
_LARGE = [
    lambda r: pd.Timestamp("2020-01-01", tz=r.choice([None, "Europe/Rome"])) + pd.Timedelta(r.randint(0, 9)),
    lambda r: r.choice([pd.NaT, pd.NA, pd.Timedelta(3), pd.Period("2020-01"), pd.Interval(0, 1)]),
    lambda r: pd.Series([r.randint(0, 9), None], dtype=r.choice(["Int64", "float64", "object"]), name="s"),
    lambda r: pd.DataFrame({"a": [1, r.randint(0, 9)], "b": ["x", None], "c": pd.Categorical(["a", "b"])}),
    lambda r: pd.date_range("2020-01-01", periods=r.randint(1, 3)),
    lambda r: pa.array([r.randint(0, 9), None], r.choice([pa.int8(), pa.int64(), pa.float64()])),
    lambda r: pa.table({"a": [r.randint(0, 9)], "b": [["x", None]]}),
    lambda r: pa.record_batch({"a": [r.randint(0, 9)]}),
    lambda r: pa.scalar(r.randint(0, 9)),
    lambda r: pa.chunked_array([[1], [r.randint(0, 9)]]),
    lambda r: np.random.default_rng(r.randint(0, 9)),
    lambda r: kinds.random.Random(r.randint(0, 9)),
]


def scalar(r):
    return _SCALARS[int(r.random() * len(_SCALARS))](r)


def _items(r, depth):
    return [make(r, depth + 1) for _ in range(r.randint(0, 3))]


def _pairs(r, depth):
    return [(r.choice(KEYS), make(r, depth + 1)) for _ in range(r.randint(0, 3))]


def _numbers(r):
    dtype = r.choice(DTYPES)
    shape = r.choice([(3,), (0,), (2, 2), ()])
    found = np.zeros(shape, dtype) if r.random() < 0.3 else np.ones(shape, "i8").astype(dtype)
    return np.asfortranarray(found) if len(shape) == 2 and r.random() < 0.5 else found


def _objects(r, depth):
    found = np.empty(2, object)
    found[0], found[1] = make(r, depth + 1), scalar(r)
    return found


def _ring(r, depth):
    node = first = classes.Node(make(r, depth + 1))
    for _ in range(r.randint(0, 2)):
        node = node.insert(scalar(r))
    return first


def _by_identity(r):
    one, other = classes.ById(r.randint(0, 9)), classes.ById(10)
    return {one: 1, other: one, "set": {one, other}}


def _marked(thing, r):
    thing.mark = [r.randint(0, 9)]
    return thing


_CONTAINERS = [
    lambda r, d: _items(r, d),
    lambda r, d: tuple(_items(r, d)),
    lambda r, d: dict(_pairs(r, d)),
    lambda r, d: {r.choice("abc"): scalar(r) for _ in range(3)},
    lambda r, d: {r.choice(KEYS) for _ in range(3)},
    lambda r, d: bytearray(r.choice([b"", b"abc"])),
    lambda r, d: collections.deque(_items(r, d), r.choice([None, 2, MOST])),
    lambda r, d: collections.Counter(r.choice("abc") for _ in range(3)),
    lambda r, d: collections.defaultdict(r.choice([list, int, kinds.make_list, None]), _pairs(r, d)),
    lambda r, d: collections.OrderedDict(_pairs(r, d)),
    lambda r, d: collections.ChainMap(dict(_pairs(r, d)), {}),
    lambda r, d: collections.UserDict(dict(_pairs(r, d))),
    lambda r, d: kinds.D(r.randint(0, 9), make(r, d + 1)),
    lambda r, d: kinds.F(r.randint(0, 9), kinds.D(1, _items(r, d))),
    lambda r, d: kinds.S(r.randint(0, 9), make(r, d + 1)),
    lambda r, d: kinds.A(r.randint(0, 9), make(r, d + 1)),
    lambda r, d: kinds.AD(make(r, d + 1)),
    lambda r, d: kinds.M(r.randint(0, 9), r.choice("ab")),
    lambda r, d: kinds.P(x=r.randint(0, 9), y=[1, 2]),
    lambda r, d: kinds.PF(x=1, p=kinds.P(x=r.randint(0, 9))),
    lambda r, d: kinds.C(r.randint(0, 9), _items(r, d)),
    lambda r, d: kinds.Plain(make(r, d + 1)),
    lambda r, d: kinds.Prop(make(r, d + 1)),
    lambda r, d: kinds.Box(make(r, d + 1)),
    lambda r, d: kinds.Gs(make(r, d + 1)),
    lambda r, d: kinds.Sl(),
    lambda r, d: kinds.MyList(_items(r, d)),
    lambda r, d: kinds.MyDict(_pairs(r, d)),
    lambda r, d: types.SimpleNamespace(a=make(r, d + 1)),
    lambda r, d: array.array("i", [1, 2]),
    lambda r, d: _numbers(r),
    lambda r, d: _objects(r, d),
    lambda r, d: classes.Derived(scalar(r), make(r, d + 1)),
    lambda r, d: classes.Both(make(r, d + 1)),
    lambda r, d: _ring(r, d),
    lambda r, d: classes.Outer.Inner(make(r, d + 1)),
    lambda r, d: {classes.ByValue(r.randint(0, 3)): make(r, d + 1), kinds.Color.RED: 1, (1, kinds.N(2)): 2},
    lambda r, d: _by_identity(r),
    lambda r, d: _marked(classes.Tail(_items(r, d), r.choice([None, 3])), r),
    lambda r, d: _marked(classes.Ordered(_pairs(r, d)), r),
    lambda r, d: _marked(classes.Lazy(list, _pairs(r, d)), r),
    lambda r, d: _marked(classes.Words("abb"), r),
    lambda r, d: _marked(classes.Group([1, "a"]), r),
    lambda r, d: _marked(classes.Fixed([1, "a"]), r),
    lambda r, d: _marked(classes.Text("text"), r),
    lambda r, d: _marked(classes.Number(r.randint(0, 1 << 70)), r),
    lambda r, d: _marked(classes.Pair(_items(r, d)), r),
    lambda r, d: _marked(classes.Raw(b"ab"), r),
    lambda r, d: _marked(classes.Failure("a", r.randint(0, 9)), r),
    lambda r, d: classes.Struct(make(r, d + 1)),
    lambda r, d: classes.Model(v=make(r, d + 1)),
    lambda r, d: classes.Hidden(make(r, d + 1), scalar(r)),
    lambda r, d: classes.Named(make(r, d + 1)),
    lambda r, d: classes.Watched(make(r, d + 1)),
    lambda r, d: classes.Property(make(r, d + 1)),
    lambda r, d: classes.Property(make(r, d + 1)).method,
    lambda r, d: functools.partial(MAKE_LIST, make(r, d + 1)),
    lambda r, d: classes.TwoStates(make(r, d + 1)),
    lambda r, d: np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8", (2,))]),
]


def make(r, depth=0):
    """A value of a random type; nothing that can be changed stands in it twice."""
    kind = r.random()
    if kind < 0.012:
        return r.choice(_LARGE)(r)
    if kind < (0.45, 0.65, 0.85)[depth] if depth < 3 else True:
        return scalar(r)
    return _CONTAINERS[int(r.random() * len(_CONTAINERS))](r, depth)


# what is done to them ---------------------------------------------------------------------------------

#: class -> the attribute that holds anything
_FIELDS = {
    kinds.D: "b", kinds.S: "b", kinds.A: "y", kinds.AD: "x", kinds.Plain: "a", kinds.Prop: "a", kinds.Box: "v",
    kinds.Gs: "a", kinds.Sl: "b", types.SimpleNamespace: "a", classes.Derived: "b", classes.Both: "a", classes.Node: "value",
    classes.Outer.Inner: "a", classes.Model: "v", classes.Hidden: "more", classes.Watched: "v", classes.Property: "v",
    classes.TwoStates: "v",
}  # fmt: skip
_LISTS = (list, collections.deque)
_DICTS = (dict, collections.UserDict, collections.ChainMap)


def inside(thing):
    """What stands in it and may be gone into, in an order that is the same wherever it has been."""
    kind = type(thing)
    if kind in _FIELDS:
        return [getattr(thing, _FIELDS[kind])]
    if isinstance(thing, (*_LISTS, tuple)):
        return list(thing)
    if isinstance(thing, _DICTS) and kind is not collections.Counter:
        return list(thing.values())
    if kind is kinds.F:
        return [thing.d]
    if kind is kinds.PF:
        return [thing.p]
    if kind is classes.Struct:
        return [thing.v]
    if kind is np.ndarray and thing.dtype == object:
        return thing.ravel().tolist()
    if kind is functools.partial:
        return list(thing.args)
    if kind is types.MethodType:
        return [thing.__self__]
    return []


def some(r, thing):
    """The thing, or what stands in it at some depth."""
    for _ in range(r.randint(0, 3)):
        found = inside(thing)
        if not found:
            break
        thing = found[int(r.random() * len(found))]
    return thing


def put(r, thing, other):
    """Have a container hold another thing, perhaps itself, perhaps twice; whether it can."""
    kind = type(thing)
    if kind in _FIELDS:
        setattr(thing, _FIELDS[kind], other)
    elif isinstance(thing, _LISTS):
        if len(thing) >= MOST:
            thing.clear()
        thing.append(other)
        if r.random() < 0.2:
            thing.append(other)
    elif isinstance(thing, _DICTS) and kind is not collections.Counter:
        if len(thing) >= MOST:
            thing.clear()
        thing[r.choice(KEYS)] = other
    elif kind is np.ndarray and thing.dtype == object and thing.size:
        if other is thing:
            return False  # it would be in itself, which no pickle says
        thing[0] = other if can_change(other) and not inside(other) else None
    else:
        return False
    return True


def change(r, thing):
    """Change it in place; whether it can be."""
    kind = type(thing)
    if isinstance(thing, list):
        r.choice([thing.reverse, thing.clear, lambda: thing.insert(0, scalar(r)), lambda: thing and thing.pop(0)])()
    elif kind is collections.Counter:
        thing[r.choice("abcd")] += r.randint(-1, 2)
    elif kind is collections.OrderedDict and thing and r.random() < 0.6:
        thing.move_to_end(next(iter(thing)))
    elif kind is collections.defaultdict and thing.default_factory is not None and len(thing) < MOST:
        thing[r.choice(KEYS)]  # it makes one
    elif isinstance(thing, (dict, collections.UserDict, collections.ChainMap)):
        if len(thing) and r.random() < 0.4:
            thing.pop(next(iter(thing)), None)
        elif len(thing) < MOST:
            thing[r.choice(KEYS)] = scalar(r)
    elif isinstance(thing, set):
        (thing.add if r.random() < 0.6 else thing.discard)(r.choice(KEYS))
    elif kind is collections.deque:
        r.choice([lambda: thing.rotate(1), lambda: thing.appendleft(scalar(r)), lambda: thing and thing.popleft()])()
    elif kind is bytearray:
        thing += b"z"
        del thing[:-9]
    elif kind is array.array:
        thing.append(r.randint(0, 9))
        del thing[:-5]
    elif kind is np.ndarray and thing.dtype.kind in "iufc" and thing.size:
        thing += 1
    elif kind is pd.Series and str(thing.dtype) == "float64":
        thing.iloc[0] = r.randint(0, 9)
    elif kind is kinds.random.Random or kind is np.random.Generator:
        thing.random()
    elif kind in (kinds.M, kinds.P, kinds.A):
        thing.x += 1
    elif kind in (kinds.D, kinds.S):
        thing.a += 1
    elif kind is kinds.Prop:
        assert thing.cc == 5  # kept in the object from now on
    elif kind is classes.Node:
        thing.insert(r.randint(0, 9)) if r.random() < 0.3 else setattr(thing.following, "value", scalar(r))
    elif kind is classes.TwoStates:
        thing.same.append(1)
        del thing.same[:-3]
    elif kind is classes.Model:
        thing._hidden = scalar(r)
    elif kind is classes.Both:
        thing.extra = scalar(r)
    elif kind is classes.Failure:
        thing.mark.append(1)
        del thing.mark[:-3]
    elif kind is kinds.MyList:
        thing.extra = scalar(r)
    else:
        return False
    return True


def grown(r, thing):
    """Another value in place of one that cannot be changed."""
    kind = type(thing)
    if kind in (int, complex, fractions.Fraction):
        return thing + 1
    if kind is str:
        return (thing + "y")[-80:]
    if kind is bool:
        return not thing
    if kind is dt.datetime:
        return thing.replace(minute=r.randint(0, 59))
    if kind in (kinds.N, kinds.C):
        return thing._replace(**{thing._fields[0]: r.randint(0, 9)})
    if kind is tuple:
        return (*thing[-3:], scalar(r))
    if kind is pathlib.PosixPath:
        return thing.parent / str(r.randint(0, 9))
    return make(r)


def mutate(r, state, value):
    """Do random things to the attributes of a state, given the value of a tuple, which becomes its own."""
    for _ in range(r.randint(1, 3)):
        name, what = r.choice(NAMES), r.random()
        if what < 0.12:
            state[name] = make(r)
        elif what < 0.24:
            state[name] = state[r.choice(NAMES)]
        elif what < 0.34:
            state[name] = value
        elif what < 0.6:
            other = state[r.choice(NAMES)] if r.random() < 0.7 else value
            thing = some(r, state[name])
            if not put(r, thing, other):
                state[name] = [other, other] if r.random() < 0.5 else kinds.Plain(other)
        else:
            thing = some(r, state[name])
            if not change(r, thing):
                state[name] = grown(r, state[name])


# how two states are told apart ------------------------------------------------------------------------

_ATOMS = frozenset([bool, int, float, complex, str, bytes, type(None), decimal.Decimal, fractions.Fraction, uuid.UUID])
_FROZEN = frozenset([kinds.F, kinds.SF, kinds.AF, kinds.MF, kinds.PF, kinds.Rd])
#: what says of itself all that there is to say
_SAID = frozenset([bytearray, array.array, range, dt.date, dt.timedelta, type(Ellipsis), pathlib.PosixPath])


@functools.cache
def _is_object(kind):
    """Whether it is one of fields, of a class written here or of `collections`."""
    module = kind.__module__
    if issubclass(
        kind, (type, kinds.enum.Enum, list, dict, tuple, set, frozenset, str, int, bytearray, collections.deque)
    ):
        return False
    return module.startswith("tests.") or kind in (collections.UserDict, collections.ChainMap, types.SimpleNamespace)


@functools.cache
def _slots_of(kind):
    """Attributes of an object that stand in no dict."""
    if issubclass(kind, kinds.msgspec.Struct):
        return kind.__struct_fields__
    if issubclass(kind, kinds.pydantic.BaseModel):
        return ("__pydantic_private__", "__pydantic_fields_set__", "__pydantic_extra__")
    found = [name for base in kind.__mro__ for name in vars(base).get("__slots__", ()) if name[:2] != "__"]
    return tuple(found)


@functools.cache
def _has_attributes(kind):
    return kind.__module__.startswith("tests.") and kind.__dictoffset__ != 0


def _attributes(v, out, seen):
    kind = type(v)
    for name in _slots_of(kind):
        if hasattr(v, name):
            out.append(name)
            _say(getattr(v, name), out, seen)
    for name, item in sorted(getattr(v, "__dict__", {}).items()):
        if name != "f":
            out.append(name)
            _say(item, out, seen)


def _identity_matters(v):
    kind = type(v)
    return (
        isinstance(v, (list, dict, set, collections.deque, bytearray, np.ndarray, array.array, pd.Series, pd.DataFrame))
        or kind in (kinds.random.Random, np.random.Generator)
        or (_is_object(kind) and kind not in _FROZEN)
    )


def _callable(v):
    """A function says where it lies in the memory of its process."""
    return f"{v.__module__}.{v.__qualname__}" if isinstance(v, (types.FunctionType, type)) else v


def _say(v, out, seen):
    kind = type(v)
    if kind in _ATOMS:
        out.append(f"{kind.__name__} {v!r}")
        return
    if _identity_matters(v):
        known = seen.get(id(v))
        if known is not None:
            out.append(f"@{known}")
            return
        seen[id(v)] = len(seen)
    if isinstance(v, kinds.enum.Enum) or v is pd.NaT or v is pd.NA:
        out.append(f"the {kind.__name__} {v!r}")
    elif kind is types.FunctionType:
        out.append(f"function {v.__qualname__}")
    elif kind is types.MethodType:
        out.append(f"method {v.__func__.__qualname__} of")
        _say(v.__self__, out, seen)
    elif kind is functools.partial:
        out.append(f"partial {_callable(v.func)}")
        _say(v.args, out, seen)
    elif isinstance(v, (list, tuple, collections.deque)):
        out.append(f"{kind.__name__} {getattr(v, 'maxlen', '')}[")
        for item in v:
            _say(item, out, seen)
        if _has_attributes(kind):
            _attributes(v, out, seen)
        out.append("]")
    elif isinstance(v, dict):
        out.append(f"{kind.__name__} {_callable(getattr(v, 'default_factory', ''))}{{")
        for key, item in v.items():
            _say(key, out, seen)
            _say(item, out, seen)
        if _has_attributes(kind):
            _attributes(v, out, seen)
        out.append("}")
    elif isinstance(v, (set, frozenset)):
        out.append(f"{kind.__name__} {sorted(map(canon, v))}")
        if _has_attributes(kind):
            _attributes(v, out, seen)
        if any(type(item) is classes.ById for item in v):  # the same ones as elsewhere
            out.append(f"{sorted(seen.get(id(item), -1) for item in v)}")
    elif isinstance(v, (str, int, bytearray)):
        out.append(f"{kind.__name__} {v!r}")
        if _has_attributes(kind):
            _attributes(v, out, seen)
    elif _is_object(kind):
        out.append(f"{kind.__name__}<{v.args if isinstance(v, Exception) else ''}")
        _attributes(v, out, seen)
        out.append(">")
    elif kind in _SAID:
        out.append(f"{kind.__name__} {v!r}")
    elif kind is np.ndarray and v.dtype == object:
        out.append(f"ndarray {v.shape}[")
        for item in v.ravel().tolist():
            _say(item, out, seen)
        out.append("]")
    elif kind.__module__.startswith("pyarrow"):
        out.append(f"{kind.__name__} {getattr(v, 'type', getattr(v, 'schema', ''))} {_plain(v)!r}")
    elif kind is np.random.Generator:
        out.append(f"Generator {v.bit_generator.state!r}")
    else:
        out.append(f"{kind.__name__} {kinds.canon(v)!r}")


def _plain(v):
    return v.to_pylist() if hasattr(v, "to_pylist") else v.as_py()


def can_change(v):
    """Whether it matters that it is the same object: of others, such as a number, copies are as good."""
    kind = type(v)
    return kind in (list, dict, set, bytearray, collections.deque) or (_is_object(kind) and kind not in _FROZEN)


def canon(v):
    """A text that two values share when they are the same in type, value, order and in what is one object in them."""
    out: list[str] = []
    _say(v, out, {})
    return " ".join(out)


def sign(v):
    """A number in place of that text."""
    return crc32(canon(v).encode("utf-8", "surrogatepass"))
