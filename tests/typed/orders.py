"""Orders as dataclasses, totals as dataclasses, landed in a table for Spark."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from esault import Bolt, Topology, by_key
from esault.sinks import SparkTable
from esault.sources import JsonFiles


class Shop(enum.Enum):
    NORTH = "north"
    SOUTH = "south"


@dataclasses.dataclass
class Order:
    id: uuid.UUID
    shop: Shop
    amount: Decimal
    at: datetime


@dataclasses.dataclass
class Total:
    shop: Shop
    orders: int
    amount: Decimal
    last: datetime
    largest: uuid.UUID | None = None


def read(line: dict[str, Any]) -> Order:
    return Order(uuid.UUID(line["id"]), Shop(line["shop"]), Decimal(line["amount"]), datetime.fromisoformat(line["at"]))


class Sum(Bolt[str, Order, str, Total]):
    def __init__(self) -> None:
        self.total: Total | None = None
        self.most = Decimal(0)

    def process(self, key: str, value: Order) -> None:
        before = self.total or Total(value.shop, 0, Decimal(0), value.at)
        largest = value.id if value.amount > self.most else before.largest
        self.most = max(self.most, value.amount)
        self.total = Total(value.shop, before.orders + 1, before.amount + value.amount, value.at, largest)
        self.emit(key, self.total)


def topology(path: str = "orders.jsonl", out: str = "out/totals") -> Topology:
    t = Topology("orders")
    orders = t.spout("lines", JsonFiles(path)).map(read)
    totals = orders.key_by(lambda order: order.shop.value).bolt("sum", Sum, by_key())
    totals.sink("totals", SparkTable(out, columns=Total, key="shop", mode="replace"))
    return t
