"""Classes as users write them beside those of `kinds`: subclasses of containers and scalars with attributes, links, keys by identity."""

from __future__ import annotations

import collections
import copy
import dataclasses
import typing
from typing import Any

import attrs
import msgspec
import pydantic


@dataclasses.dataclass
class Base:
    a: Any


@dataclasses.dataclass
class Derived(Base):
    b: Any = dataclasses.field(default_factory=list)


class Both:
    """Slots, and a dict beside them."""

    __slots__ = ("__dict__", "a")

    def __init__(self, a):
        self.a = a
        self.b = [a]


class Node:
    """One of a ring of nodes."""

    __slots__ = ("following", "former", "value")

    def __init__(self, value):
        self.following = self.former = self
        self.value = value

    def insert(self, value):
        node = Node(value)
        node.former, node.following = self, self.following
        self.following.former = node
        self.following = node
        return node


class Outer:
    class Inner:
        def __init__(self, a):
            self.a = a


class ById:
    """Equal to itself alone, and so a key."""

    def __init__(self, n):
        self.n = n


class ByValue:
    """A key that is hashed by what it holds."""

    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return type(other) is ByValue and self.a == other.a

    def __hash__(self):
        return hash(self.a)


class Tail(collections.deque):
    """A deque with an attribute, as all of these."""


class Ordered(collections.OrderedDict):
    pass


class Copied:
    """What `copy.deepcopy` makes of the two loses their attributes; the plain loop must not."""

    def __deepcopy__(self, memo):
        mapping: Any = self  # a mapping, in each class that derives from this one
        made: Any = type(self)()
        memo[id(self)] = made
        made.default_factory = getattr(self, "default_factory", None)
        for key, value in mapping.items():
            made[copy.deepcopy(key, memo)] = copy.deepcopy(value, memo)
        vars(made).update(copy.deepcopy(vars(self), memo))
        return made


class Lazy(Copied, collections.defaultdict):
    pass


class Words(Copied, collections.Counter):
    default_factory = property(lambda self: None, lambda self, value: None)


class Group(set):
    pass


class Fixed(frozenset):
    pass


class Text(str):
    pass


class Number(int):
    pass


class Pair(tuple):
    pass


class Raw(bytearray):
    pass


class Failure(Exception):
    pass


class Struct(msgspec.Struct):
    v: Any


class Model(pydantic.BaseModel):
    v: Any = None
    _hidden: Any = pydantic.PrivateAttr(None)


@attrs.define
class Hidden:
    _v: Any
    more: Any = None


class Named(typing.NamedTuple):
    v: Any


class Watched:
    """Sets attributes its own way."""

    def __init__(self, v):
        self.v = v

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        object.__setattr__(self, "sets", getattr(self, "sets", 0) + 1)


class Property:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, value):
        self._v = value

    def method(self):
        return self._v


class TwoStates:
    """Says its state as a tuple, which is shared in part."""

    def __init__(self, v):
        self.v = v
        self.same = [v]

    def __getstate__(self):
        return (self.v, self.same, self.same)

    def __setstate__(self, state):
        self.v, self.same, other = state
        assert other is self.same
