"""A stream joined with a table of what came before in the same stream, then reduced to totals of a TypedDict."""

import random
from typing import TypedDict

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Sold(TypedDict):
    pieces: int
    names: dict[str, int]


def both(size):
    rng = random.Random(24)
    for i in range(size):
        customer = rng.randrange(30)
        if rng.random() < 0.2:
            yield customer, {"customer": {"name": f"n{i}", "city": rng.choice(["Rome", "Oslo"])}}
        else:
            yield customer, {"order": rng.randrange(1, 9)}


def add(total: Sold, pair) -> Sold:
    order, customer = pair
    name = customer["name"] if customer else "?"
    return {"pieces": total["pieces"] + order, "names": {**total["names"], name: order}}


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("enriched")
    rows = t.spout("both", Paced(Items(lambda: both(size)), rate))
    customers = rows.filter(lambda value: "customer" in value).map(lambda value: value["customer"])
    orders = rows.filter(lambda value: "order" in value).map(lambda value: value["order"])
    known = orders.join_table("known", customers, missing="wait", wait_most=10**6)
    known["unmatched"].sink("unmatched", JsonLines(f"{out}/unmatched.jsonl"))
    known.map(lambda pair: pair[0]).reduce("pieces", lambda total, n: total + n, initial=0).sink(
        "pieces", JsonLines(f"{out}/pieces.jsonl")
    )
    known.reduce("sold", add, initial=Sold(pieces=0, names={})).sink("sold", JsonLines(f"{out}/sold.jsonl"))
    return t


def together(sink, rows):
    """Which of a customer's names an order met is not said: both ways from the spout may be the quicker one."""
    if sink == "sold":
        return [(key, value["pieces"]) for key, value in rows]
    if sink == "pieces":
        largest = {}
        for key, value in rows:
            largest[key] = max(value, largest.get(key, 0))
        return list(largest.items())
    return rows


def expected(size):
    orders, known = {}, set()
    for customer, value in both(size):
        if "order" in value:
            orders.setdefault(customer, []).append(value["order"])
        else:
            known.add(customer)
    pieces, sold, unmatched = [], [], [(c, n) for c, numbers in orders.items() if c not in known for n in numbers]
    for customer in known & set(orders):
        total = 0
        for n in orders[customer]:
            total += n
            pieces.append((customer, total))
            sold.append((customer, {"pieces": total, "names": {}}))
    return {"unmatched": unmatched or [], "pieces": pieces, "sold": sold}
