"""What a shop offers, in tuples: tables of prices, stock and ratings joined to one; orders at the price of their time, with a name looked up."""

import json
import random
from pathlib import Path

import esault
from esault import Topology
from esault.sinks import JsonLines, SparkTable
from esault.sources import Items, Paced

ARTICLES = [f"art-{n}" for n in range(12)]
LATENESS = 9


def prices(size):
    """(when, cents); an article that is taken out of the catalogue has None."""
    rng = random.Random(61)
    return [(rng.choice(ARTICLES), (at, rng.choice([None, *range(100, 900)]))) for at in range(0, size, 4)]


def stock(size):
    rng = random.Random(62)
    return [(rng.choice(ARTICLES), (n, rng.choice([None, None, *range(9)]))) for n in range(0, size, 2)]


def ratings(size):
    rng = random.Random(63)
    return [(rng.choice(ARTICLES), (n, rng.randrange(1, 6))) for n in range(0, size, 8)]


def orders(size):
    rng = random.Random(64)
    sold = [(max(0, at - rng.randrange(LATENESS)), rng.randrange(1, 4), rng.choice(ARTICLES)) for at in range(size)]
    return [(order[2], order) for order in sold]


def names():
    return {article: article.upper() for article in ARTICLES[:-1]}


def known(versioned):
    return None if versioned[1] is None else versioned


def priced(found):
    (at, pieces, article), version = found
    return None if version is None or version[1] is None else (at, pieces * version[1], article)


def flat(row):
    """What is offered, in columns; None: no more."""
    if row is None:
        return None
    offer, rating = row
    (_, cents), (_, pieces) = offer
    return cents, pieces, None if rating is None else rating[1]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("offers")
    asked = t.spout("prices", Paced(Items(prices(size)), rate / 4), time=lambda version: version[0])
    there = t.spout("stock", Paced(Items(stock(size)), rate / 2))
    rated = t.spout("ratings", Paced(Items(ratings(size)), rate / 8))
    sold = t.spout("orders", Paced(Items(orders(size)), rate), time=lambda order: order[0], lateness=LATENESS)
    offers = asked.map(known).join_tables("offers", there.map(known))
    whole = offers.join_tables("whole", rated, kind="left")
    columns = {"article": str, "cents": int, "pieces": int, "rating": int | None}
    whole.map(flat).sink("catalogue", SparkTable(f"{out}/catalogue", columns, primary_key="article"))
    bought = sold.join_table("bought", asked, as_of=True)
    paid = bought.map(priced).filter(lambda order: order is not None)
    paid.lookup(names, lambda order: order[2], refresh=0.2).sink("paid", JsonLines(f"{out}/paid.jsonl"))
    return t


def together(sink, rows):
    if sink == "catalogue":
        return [(key, value) for key, value in dict(rows).items() if value is not None]
    return rows


def written(folder, sink):
    if sink == "catalogue":
        rows = esault.read(Path(folder, sink)).to_pylist()
        return [(row["article"], (row["cents"], row["pieces"], row["rating"])) for row in rows]
    lines = map(json.loads, Path(folder, f"{sink}.jsonl").read_text().splitlines())
    return [(line["key"], line["value"]) for line in lines]


def expected(size):
    price, pieces, rating, paid = dict(prices(size)), dict(stock(size)), dict(ratings(size)), []
    catalogue = [
        (article, (price[article][1], pieces[article][1], rating.get(article, (0, None))[1]))
        for article in ARTICLES
        if price.get(article, (0, None))[1] is not None and pieces.get(article, (0, None))[1] is not None
    ]
    for article, (at, n, _) in orders(size):
        versions = [cents for key, (since, cents) in prices(size) if key == article and since <= at]
        if versions and versions[-1] is not None:
            paid.append((article, ((at, n * versions[-1], article), names().get(article))))
    return {"catalogue": catalogue, "paid": paid}
