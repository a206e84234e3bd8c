"""What units say of their keys and values: shown on edges, and compared."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

import pytest
from typing_extensions import Self

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.builder import Topology
from esault.topology.declared import edge_types, misfits
from esault.topology.drawing import draw, mermaid
from esault.topology.grouping import by_key, shuffle
from esault.topology.spout import Spout

if TYPE_CHECKING:
    from fractions import Fraction

V = TypeVar("V")


@dataclass
class Order:
    what: str

    @classmethod
    def new(cls, value: Any) -> Self:
        return cls("x")


class Rush(Order):
    pass


class Total(TypedDict):
    what: str


class Sum(TypedDict):
    sum: int


class Line(NamedTuple):
    what: str


class Named(Protocol):
    what: str


class Colour(enum.Enum):
    RED = 1


class Orders(Spout[str, Order]):
    def read(self, limit):
        return [("a", Order("b"))]


class Anything(Spout):
    def read(self, limit):
        return [("a", 1)]


class Price(Bolt[str, Order, str, Total]):
    def process(self, key, value):
        self.emit(key, Total(what=value.what))


class Further(Price):
    """Says what its base says."""


class Latest(Bolt[str, V, str, V], Generic[V]):
    def process(self, key, value):
        self.emit(key, value)


class LatestOrder(Latest[Order]):
    pass


class Batches(BatchBolt[str, Total, int, Line]):
    def process_batch(self, rows):
        self.emit_batch([(1, Line("x"))])


class Plain(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def lines(order: Order) -> Iterator[Line]:
    yield Line(order.what)


def length(order: Order) -> int:
    return len(order.what)


def missing(order: Order) -> Fraction:  # which is not there when it is asked for
    raise NotImplementedError


def taking(value: Any, key: Any = str) -> type:
    class Taking(Bolt[key, value, str, str]):
        def process(self, key, value):
            self.emit("a", "b")

    return Taking


def sending(value: Any) -> Spout:
    class Sending(Spout[str, value]):
        def read(self, limit):
            return []

    return Sending()


def types_at(factory, steps=lambda stream: stream, spout=None):
    t = Topology("t")
    steps(t.spout("orders", spout or Orders())).bolt("next", factory, by_key())
    return edge_types(t.plan())["next", 0]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda s: s, (str, Order)),
        (lambda s: s.filter(bool), (str, Order)),
        (lambda s: s.timed(lambda order: 0.0), (str, Order)),
        (lambda s: s.map(length), (str, int)),
        (lambda s: s.map(Line), (str, Line)),
        (lambda s: s.map(lambda order: 1), (str, Any)),
        (lambda s: s.map(missing), (str, Any)),
        (lambda s: s.map(Rush.new), (str, Rush)),
        (lambda s: s.map(len), (str, Any)),
        (lambda s: s.flat_map(lines), (str, Line)),
        (lambda s: s.flat_map(lambda order: [1]), (str, Any)),
        (lambda s: s.key_by(length), (int, Order)),
        (lambda s: s.key_by(length).filter(bool).map(length), (int, int)),
    ],
)
def test_what_a_spout_and_its_steps_say_stands_on_the_edge(steps, expected):
    assert types_at(Plain, steps) == expected


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (Price, (str, Order)),
        (Further, (str, Order)),
        (functools.partial(Further), (str, Order)),
        (Batches, (str, Total)),
        (LatestOrder, (str, Order)),
        (Latest[Order], (str, Order)),
        (Latest, (str, Any)),
        (lambda: Price(), (Any, Any)),
        (Plain, (Any, Any)),
    ],
)
def test_where_the_sender_says_nothing_the_receivers_word_stands_there(factory, expected):
    assert types_at(factory, spout=Anything()) == expected


def test_what_a_bolt_sends_is_what_comes_to_the_next():
    t = Topology("t")
    price = t.spout("orders", Orders()).bolt("price", Price, by_key(), streams=("odd",))
    price.bolt("lines", Batches, by_key()).bolt("plain", Plain, shuffle())
    price["odd"].bolt("odd", Plain, by_key())
    assert edge_types(t.plan()) == {
        ("price", 0): (str, Order),
        ("lines", 0): (str, Total),
        ("plain", 0): (int, Line),
        ("odd", 0): (Any, Any),
    }


def test_types_are_drawn_on_the_arrows_and_nothing_where_nobody_says_any():
    t = Topology("t")
    orders = t.spout("orders", Orders())
    orders.bolt("price", Price, by_key()).bolt("plain", Plain, shuffle())
    orders.flat_map(lambda order: []).bolt("none", taking(int | None, None), shuffle())
    orders.map(lambda order: 1).bolt("deep", taking(dict[str, list[Order]]), by_key())
    t.spout("any", Anything()).bolt("other", Plain, shuffle())
    text = draw(t.plan())
    assert "by_key() [str, Order] → price  bolt Price" in text
    assert "shuffle() [str, Total] → plain  bolt Plain" in text
    assert "shuffle() [str, int | None] → none" in text
    assert "by_key() [str, dict[str, list[Order]]] → deep" in text
    assert "shuffle() → other" in text
    assert 'u0 -->|"by_key() [str, Order]"| u1' in mermaid(t.plan())


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (Order, Total),
        (Order, int),
        (int, str),
        (float, int),
        (Total, Line),
        (Line, list),
        (dict[str, int], list[int]),
        (Order, dict),
        (Annotated[int, "n"], str),
        (Colour, str),
        (Order, Mapping),
    ],
)
def test_classes_that_are_no_relations_are_told(sent, taken):
    t = Topology("t")
    t.spout("orders", sending(sent)).bolt("next", taking(taken), by_key())
    (said,) = misfits(t.plan())
    assert said.startswith("unit 'next' takes [str, ")
    assert "but what comes from 'orders' is [str, " in said


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (Order, Order),
        (Rush, Order),
        (Order, Rush),
        (int, float),
        (bool, int),
        (Total, dict),
        (dict[str, str], Total),
        (Total, Sum),
        (Line, tuple),
        (list[int], list),
        (dict, Mapping),
        (Order, int | None),
        (Order | None, int),
        (Order, Any),
        (Any, Order),
        (Order, object),
        (Order, Named),
        (Order, V),
        (Order, "Later"),
        (Annotated[int, "n"], int),
    ],
)
def test_what_may_fit_is_not_told(sent, taken):
    t = Topology("t")
    t.spout("orders", sending(sent)).bolt("next", taking(taken), by_key())
    assert misfits(t.plan()) == []


def test_a_key_that_does_not_fit_is_told_with_both_pairs():
    t = Topology("t")
    t.spout("orders", Orders()).key_by(length).bolt("price", Price, by_key())
    assert misfits(t.plan()) == ["unit 'price' takes [str, Order], but what comes from 'orders' is [int, Order]"]


def test_of_several_inputs_none_is_told_since_each_may_bring_something_else():
    t = Topology("t")
    orders, others = t.spout("orders", Orders()), t.spout("others", sending(int))
    t.bolt("price", Price, inputs={orders: by_key(), others: by_key()})
    assert misfits(t.plan()) == []


def test_copies_are_told_once_and_their_gate_says_nothing():
    t = Topology("t")
    t.spout("lines", sending(int)).bolt("price", Price, by_key(), replicas=2).bolt("next", Batches, by_key())
    assert len(misfits(t.plan())) == 1
