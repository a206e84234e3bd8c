"""What was sold, by product: a TypedDict through reduce to Parquet."""

from typing import TypedDict

from esault import Topology
from esault.sinks import Parquet
from esault.sources import Items


class Sale(TypedDict):
    product: str
    pieces: int
    price: float


class Sold(TypedDict):
    product: str
    pieces: int
    revenue: float


SALES: list[Sale] = [
    {"product": "bread", "pieces": 3, "price": 1.5},
    {"product": "milk", "pieces": 1, "price": 0.75},
    {"product": "bread", "pieces": 2, "price": 1.75},
]


def add(sold: Sold, sale: Sale) -> Sold:
    return {
        "product": sale["product"],
        "pieces": sold["pieces"] + sale["pieces"],
        "revenue": sold["revenue"] + sale["pieces"] * sale["price"],
    }


def topology(out: str = "out/sold") -> Topology:
    t = Topology("sold")
    sales = t.spout("sales", Items([(None, sale) for sale in SALES])).key_by(lambda sale: sale["product"])
    sold = sales.reduce("sold", add, initial=Sold(product="", pieces=0, revenue=0.0))
    sold.sink("sold", Parquet(out, columns=Sold, key="product", mode="replace"))
    return t
