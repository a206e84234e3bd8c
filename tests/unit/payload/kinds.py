"""One or more of each kind of value that users have, and how two are told apart when Python says they are equal."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import http
import ipaddress
import itertools
import math
import pathlib
import random
import re
import types
import typing
import urllib.parse
import uuid
import zoneinfo

import attrs
import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pydantic


def make_list():
    return []


@dataclasses.dataclass
class D:
    a: int
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class F:
    a: int
    d: D


@dataclasses.dataclass(slots=True)
class S:
    a: int
    b: str


@dataclasses.dataclass(slots=True, frozen=True)
class SF:
    a: int
    b: str


@attrs.define
class A:
    x: int
    y: list = attrs.Factory(list)


@attrs.frozen
class AF:
    x: int


@attrs.define(slots=False)
class AD:
    x: int


class M(msgspec.Struct):
    x: int
    y: str = "a"


class MF(msgspec.Struct, frozen=True, kw_only=True):
    x: int
    y: str = "a"


class P(pydantic.BaseModel):
    x: int
    y: list[int] = []
    _z: int = pydantic.PrivateAttr(3)


class PF(pydantic.BaseModel, frozen=True):
    x: int
    p: P


class N(typing.NamedTuple):
    x: int
    y: str = "q"


C = collections.namedtuple("C", "a b")


class Color(enum.Enum):
    RED = "r"
    BLUE = ("b", 1)


class Way(enum.Enum):
    """Of values that are equal to themselves alone."""

    DOUBLED = functools.partial(pow, 2)
    MADE = functools.partial(make_list)
    NONE = object()


class Limit(enum.Enum):
    NOT_A_NUMBER = math.nan
    NONE = None
    SOME = [1, (2, "x")]


class Lvl(enum.IntEnum):
    LOW = 1


class Fl(enum.Flag):
    A = 1
    B = 2


class Str(str, enum.Enum):
    X = "x"


class Plain:
    def __init__(self, a):
        self.a = a

    def __eq__(self, o):
        return type(o) is type(self) and vars(o) == vars(self)

    def m(self):
        return self.a


class Hashed(Plain):
    """What may be a key, and can be changed."""

    def __hash__(self):
        return hash(self.a)


class Prop(Plain):
    @property
    def pp(self):
        return 1

    @functools.cached_property
    def cc(self):
        return 5


class Gs:
    def __init__(self, a):
        self.a = a
        self.f = lambda: 1

    def __getstate__(self):
        return {"a": self.a}

    def __setstate__(self, s):
        self.a = s["a"]
        self.f = lambda: 1

    def __eq__(self, o):
        return self.a == o.a


def rebuild(a):
    return Rd(a)


class Rd:
    def __init__(self, a):
        self.a = a

    def __reduce__(self):
        return (rebuild, (self.a,))

    def __eq__(self, o):
        return self.a == o.a


class Sl:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1
        self.b = [2]

    def __eq__(self, o):
        return self.a == o.a and self.b == o.b


class MyDict(dict):
    pass


class MyList(list):
    def __init__(self, *a):
        super().__init__(*a)
        self.extra = 1


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v


class Refused(Exception):
    """What its constructor takes is not what it keeps."""

    def __init__(self, code, why):
        super().__init__(f"{code}: {why}")
        self.code = code

    def __eq__(self, other):
        return (self.args, self.code) == (other.args, other.code)

    __hash__ = None


class Err(Exception):
    pass


class Sing:
    """A singleton that says its name."""

    def __reduce__(self):
        return "SING"


SING = Sing()
loop = [1]
loop.append(loop)
shared = [1]
dl = collections.deque([1, 2], maxlen=3)
VALUES = [
    None,
    True,
    1,
    2**70,
    -(2**200),
    1.5,
    math.inf,
    -0.0,
    "ü\ud800",
    b"x",
    bytearray(b"y"),
    1j,
    (1, [2, (3,)]),
    [1, (2,)],
    {"b": 1, "a": [1]},
    {(1, 2): 3, None: 4, True: 5, 1.5: 6, frozenset([1]): 7},
    {1, "a"},
    frozenset([(1,)]),
    dt.datetime(2020, 1, 1, fold=1),
    dt.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Rome")),
    dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc),
    dt.date(2020, 1, 1),
    dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1), "X")),
    dt.timedelta(1, 2, 3),
    zoneinfo.ZoneInfo("UTC"),
    decimal.Decimal("1.50"),
    fractions.Fraction(1, 3),
    uuid.uuid4(),
    pathlib.Path("a/b"),
    pathlib.PureWindowsPath("c:/x"),
    Color.RED,
    Color.BLUE,
    Lvl.LOW,
    Fl.A | Fl.B,
    Str.X,
    range(1, 10, 3),
    slice(1, 2),
    dl,
    collections.Counter("aab"),
    collections.defaultdict(list, {1: [2]}),
    collections.defaultdict(make_list),
    collections.defaultdict(functools.partial(collections.defaultdict, int)),
    collections.OrderedDict(b=1, a=2),
    collections.ChainMap({1: 2}),
    N(1),
    C(1, [2]),
    D(1),
    F(1, D(2, [3])),
    S(1, "a"),
    SF(1, "b"),
    A(1, [2]),
    AF(1),
    AD(2),
    M(1),
    MF(x=2),
    P(x=1, y=[1]),
    PF(x=1, p=P(x=2)),
    np.array([1, 2]),
    np.array([[1.5, 2], [3, 4]], order="F"),
    np.array(["a", "bb"]),
    np.array([1, "a", None], dtype=object),
    np.zeros((0, 3)),
    np.array(5),
    np.float64(1.5),
    np.int8(3),
    np.bool_(True),
    np.datetime64("2020-01-01"),
    np.array(["2020-01-01"], dtype="M8[ns]"),
    np.str_("a"),
    np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.dtype("f4"),
    np.float64,
    np.random.default_rng(3),
    np.ma.array([1, 2], mask=[0, 1]),
    pd.Timestamp("2020-01-01", tz="Europe/Rome"),
    pd.Timedelta(1),
    pd.Series([1, 2], name="s"),
    pd.DataFrame(
        {
            "a": [1, 2],
            "b": ["x", None],
            "c": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            "d": pd.Categorical(["a", "b"]),
        }
    ),
    pd.Index([1, 2]),
    pd.date_range("2020-01-01", periods=3),
    pd.NaT,
    pd.NA,
    pd.Period("2020-01"),
    pd.Interval(0, 1),
    pd.Series(pd.interval_range(0, 2)),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["a"], dtype="string"),
    pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]),
    pd.DataFrame({"t": pd.date_range("2020", periods=2, tz="UTC")}).set_index("t"),
    pa.array([1, 2]),
    pa.array([[1], [2, None]]),
    pa.table({"a": [1, 2]}),
    pa.record_batch({"a": [1]}),
    pa.scalar(5),
    pa.schema([("a", pa.int32())]),
    pa.int64(),
    pa.chunked_array([[1], [2]]),
    pa.array([]),
    Plain(1),
    Prop([1]),
    Gs(2),
    Rd(3),
    Sl(),
    MyDict(a=1),
    MyList([1, 2]),
    Box([1]),
    Box[int](3),
    SING,
    Err("a", 1),
    ValueError("x"),
    random.Random(3),
    re.compile("a+", re.I),
    types.SimpleNamespace(a=1),
    ipaddress.ip_address("::1"),
    itertools.count(5),
    Plain(1).m,
    make_list,
    Plain,
    int,
    type(None),
    functools.partial(make_list),
    len,
    math.sqrt,
    Ellipsis,
    NotImplemented,
    list[int],
    __import__("array").array("i", [1, 2]),
    collections.UserDict(a=1),
    __import__("statistics").NormalDist(0, 1),
    msgspec.UNSET,
    Refused(7, "no"),
    http.HTTPStatus.NOT_FOUND,
    urllib.parse.urlsplit("http://a/b?c=d"),
    pydantic.TypeAdapter(pydantic.HttpUrl).validate_python("http://a/b"),
    pydantic.SecretStr("x"),
    pd.Series(pd.cut([1, 5, 9], 2)),
    pd.Series([1, None], dtype="int64[pyarrow]"),
]


def _names():
    seen: dict[str, int] = {}
    for value in VALUES:
        name = type(value).__name__
        seen[name] = seen.get(name, 0) + 1
        yield f"{name}-{seen[name]}", value


NAMED = dict(_names())


def canon(v):
    """So that what Python takes for equal differs: 1 and True, 0.0 and -0.0, a list and a subclass of it."""
    if v is None or isinstance(v, (bool, int, float, complex, str, bytes, bytearray)):
        return type(v), repr(v)
    if isinstance(v, pd.DataFrame):
        return type(v), [(name, canon(v[name])) for name in v.columns], list(v.index)
    if isinstance(v, (pd.Series, pd.Index)):
        return type(v), str(v.dtype), v.name, [repr(x) for x in v]
    if isinstance(v, (list, tuple, collections.deque)):
        return type(v), [canon(x) for x in v], getattr(v, "maxlen", 0), sorted(getattr(v, "__dict__", {}))
    if isinstance(v, dict):
        factory = getattr(v, "default_factory", None)
        return type(v), [(canon(k), canon(x)) for k, x in v.items()], canon(factory) if factory else None
    if isinstance(v, (set, frozenset)):
        return type(v), sorted(repr(canon(x)) for x in v)
    if isinstance(v, np.ma.MaskedArray):
        return type(v), v.tolist()
    if isinstance(v, np.ndarray):
        return type(v), str(v.dtype), v.shape, repr(v.tolist()), v.flags.f_contiguous, v.flags.writeable
    if isinstance(v, random.Random):
        return v.getstate()
    if isinstance(v, np.random.Generator):
        return repr(v.bit_generator.state)
    if isinstance(v, functools.partial):
        return v.func, v.args, v.keywords
    if isinstance(v, types.MethodType):
        return v.__func__, canon(v.__self__)
    if isinstance(v, Exception):
        return type(v), v.args, canon(vars(v))
    if isinstance(v, dt.datetime) and v is not pd.NaT:
        return type(v), v.replace(tzinfo=None), v.fold, v.utcoffset(), repr(v.tzinfo)
    if v is pd.NaT or v is pd.NA or v is SING or isinstance(v, enum.Enum):
        return id(v)
    if isinstance(v, (itertools.count, decimal.Decimal, np.generic)):
        return type(v), repr(v)
    if dataclasses.is_dataclass(v) and not isinstance(v, type):
        return type(v), [(f.name, canon(getattr(v, f.name))) for f in dataclasses.fields(v)]
    if isinstance(v, Plain):
        return type(v), canon(vars(v))
    return type(v), v
