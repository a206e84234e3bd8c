"""pydantic models as values and state: nested, with aliases, validators, private attributes and a computed field."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, computed_field

from esault import Bolt, Topology, by_key, skip
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Kind(str, Enum):
    BOOK = "book"
    TOY = "toy"


class Line(BaseModel):
    model_config = ConfigDict(frozen=True)
    kind: Kind
    price: Decimal = Field(ge=0)


class Order(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    customer: str
    day: date = Field(alias="orderDay")
    lines: list[Line] = []

    @computed_field
    def total(self) -> Decimal:
        return sum((line.price for line in self.lines), Decimal(0))


class Customer(BaseModel):
    name: str
    orders: int = 0
    spent: dict[Kind, Decimal] = {}
    last: Order | None = None
    _days: set[date] = PrivateAttr(default_factory=set)


class Keep(Bolt[str, Order, str, Customer]):
    def __init__(self) -> None:
        self.customer: Customer | None = None

    def process(self, key: str, value: Order) -> None:
        if self.customer is None:
            self.customer = Customer(name=key)
        c = self.customer
        c._days.add(value.day)
        c.orders += len(c._days) > 0
        for line in value.lines:
            c.spent[line.kind] = c.spent.get(line.kind, Decimal(0)) + line.price
        c.last = value
        self.emit(
            key, c.model_copy(deep=True, update={"spent": dict(c.spent), "name": f"{key}:{len(c._days)}:{value.total}"})
        )


def orders(size: int):
    rng = random.Random(17)
    for i in range(size):
        lines = [
            {"kind": rng.choice(["book", "toy"]), "price": f"{rng.randrange(-40, 900) / 100:.2f}"}
            for _ in range(rng.randrange(3))
        ]
        day = date(2026, 1, 1) + timedelta(days=rng.randrange(9))
        yield None, {"customer": f"c{rng.randrange(15)}", "orderDay": day.isoformat(), "lines": lines}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("orders-checked")
    good = t.spout("orders", Paced(Items(lambda: orders(size)), rate)).map(Order.model_validate, on_error=skip())
    kept = good.key_by(lambda order: order.customer).bolt("keep", Keep, by_key())
    kept.sink("customers", JsonLines(f"{out}/customers.jsonl"))
    return t


def expected(size: int):
    seen, rows = {}, []
    for _, order in orders(size):
        if any(line["price"].startswith("-") for line in order["lines"]):
            continue
        mine = seen.setdefault(order["customer"], [])
        mine.append(order)
        spent: dict[Kind, Decimal] = {}
        for line in (line for each in mine for line in each["lines"]):
            spent[Kind(line["kind"])] = spent.get(Kind(line["kind"]), Decimal(0)) + Decimal(line["price"])
        days = len({each["orderDay"] for each in mine})
        total = sum((Decimal(line["price"]) for line in order["lines"]), Decimal(0))
        name = f"{order['customer']}:{days}:{total}"
        rows.append(
            (order["customer"], Customer(name=name, orders=len(mine), spent=spent, last=Order.model_validate(order)))
        )
    return {"customers": rows}
