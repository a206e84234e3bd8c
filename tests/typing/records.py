"""Streams of dataclasses, TypedDicts, NamedTuples and models, for a type checker; `# misfit` as in `fitting.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
from typing_extensions import TypedDict, assert_type

from esault import BatchBolt, Bolt, Spout, Stream, Topology, by_key, run, shuffle
from esault.sinks import Collect, JsonLines, Parquet, SparkTable
from esault.sources import Items, JsonFiles
from esault.windows import TumblingWindow


@dataclass
class Order:
    what: str
    pieces: int
    at: float = 0.0


class Total(TypedDict):
    what: str
    pieces: int


class Line(NamedTuple):
    what: str
    piece: int


@attrs.define
class Parcel:
    what: str


class Event(msgspec.Struct):
    what: str


class Model(pydantic.BaseModel):
    what: str
    pieces: int


class Orders(Spout[str, Order]):
    def read(self, limit: int) -> Sequence[tuple[str, Order]]:
        if limit:
            return [("a", Order("bread", 1))]
        return [("a", Line("bread", 1))]  # misfit


class Price(Bolt[str, Order, str, Total]):
    def process(self, key: str, value: Order) -> None:
        self.emit(key, Total(what=value.what, pieces=value.pieces))
        self.emit(key, {"what": value.what, "pieces": value.pieces})
        self.emit(key, {"what": value.what})  # misfit
        self.emit(key, value)  # misfit
        self.emit(key, Total(what=value.what, pieces=value.price))  # misfit


class Wrong(Bolt[str, Order, str, Total]):
    def process(self, key: str, value: Total) -> None:  # misfit
        pass


class Pack(BatchBolt[str, Total, int, Parcel]):
    def process_batch(self, rows: Sequence[tuple[str, Total]]) -> None:
        self.emit_batch([(total["pieces"], Parcel(total["what"])) for _, total in rows])
        self.emit_columns([1], [Parcel("x")])
        self.emit_batch(rows)  # misfit


class Tell(Bolt[int, Parcel, None, Event]):
    def process(self, key: int, value: Parcel) -> None:
        self.emit(None, Event(value.what))


class Hourly(Bolt[str, Order, str, Line]):
    def process(self, key: str, value: Order) -> None:
        pass

    def finish(self) -> None:
        self.emit(self.key, Line(self.key, 1))


def lines(order: Order) -> Iterator[Line]:
    for piece in range(order.pieces):
        yield Line(order.what, piece)


def add(total: Total, order: Order) -> Total:
    return Total(what=order.what, pieces=total["pieces"] + order.pieces)


def fitting() -> Topology:
    t = Topology("typed")
    orders = t.spout("orders", Orders())
    assert_type(orders, Stream[str, Order])
    totals = orders.bolt("price", Price, by_key())
    assert_type(totals, Stream[str, Total])
    parcels = totals.bolt("pack", Pack, by_key())
    assert_type(parcels, Stream[int, Parcel])
    assert_type(parcels.bolt("tell", Tell, shuffle()), Stream[None, Event])
    assert_type(orders.map(lambda order: order.pieces), Stream[str, int])
    assert_type(orders.filter(lambda order: order.pieces > 1), Stream[str, Order])
    assert_type(orders.flat_map(lines), Stream[str, Line])
    assert_type(orders.key_by(lambda order: order.pieces), Stream[int, Order])
    assert_type(orders.reduce("sum", add, initial=Total(what="", pieces=0)), Stream[str, Total])
    assert_type(orders.join_table("with", totals), Stream[str, tuple[Order, Total | None]])
    hourly = orders.window("hourly", Hourly, TumblingWindow(3600), time=lambda order: order.at)
    assert_type(hourly, Stream[str, Line])
    items = t.spout("items", Items([("a", Order("a", 1))]))
    assert_type(items, Stream[str, Order])
    items.sink("collected", Collect())
    models = t.spout("models", JsonFiles("orders.jsonl")).map(Model.model_validate)
    assert_type(models, Stream[Any, Model])
    totals.sink("table", SparkTable("out/table", Total, key="what"))
    orders.sink("parquet", Parquet("out/parquet", columns=Order, key={"number": int}))
    models.sink("json", JsonLines("out/models.jsonl"))
    return t


def misfits() -> Topology:
    t = Topology("typed")
    orders = t.spout("orders", Orders())
    totals = orders.bolt("price", Price, by_key())
    assert_type(totals, Stream[str, Order])  # misfit
    totals.bolt("again", Price, by_key())  # misfit
    orders.bolt("pack", Pack, by_key())  # misfit
    orders.map(lambda order: order.price)  # misfit
    orders.flat_map(lines).filter(lambda line: line.pieces)  # misfit
    orders.key_by(lambda order: order["what"])  # misfit
    totals.map(lambda total: total["price"])  # misfit
    orders.reduce("sum", add, initial=Line("", 0))  # misfit
    totals.window("hourly", Hourly, TumblingWindow(3600))  # misfit
    orders.sink("parquet", Parquet("out/parquet", columns=Order("a", 1)))  # misfit
    orders.sink("table", SparkTable("out/table", Order, key=str))  # misfit
    return t


if __name__ == "__main__":
    run(fitting)
