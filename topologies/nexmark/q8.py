"""Nexmark query 8: who has opened an auction within the ten seconds in which they signed up?

A join of two streams within a window. Out come (person, (name, reserve price in cents)) in `out/nexmark/q8.jsonl`, for each of
their auctions in that window.

    esault run topologies/nexmark/q8.py
"""

from nexmark_events import AUCTION, KIND, PERSON, Auction, Person
from nexmark_source import seconds, source

from esault import Stream, Topology
from esault.sinks import JsonLines
from esault.windows import TumblingWindow

__all__ = ["query", "topology"]


def query(events: Stream, size: float = 10.0, lateness: float = 0.0) -> Stream:
    people = events.filter(lambda e: e[KIND] == PERSON).key_by(lambda person: person[Person.ID])
    auctions = events.filter(lambda e: e[KIND] == AUCTION).key_by(lambda auction: auction[Auction.SELLER])
    new = people.join("new-sellers", auctions, TumblingWindow(size), time=seconds, lateness=lateness, max_parallelism=8)
    return new.map(lambda pair: (pair[0][Person.NAME], pair[1][Auction.RESERVE]))


def topology(
    events: int = 100_000,
    rate: float = 0.0,
    per_second: float = 1000.0,
    out: str = "out/nexmark/q8.jsonl",
) -> Topology:
    """`rate`: events a second, 0: as fast as they are taken; `per_second`: events in a second of their own time."""
    t = Topology("nexmark-q8")
    query(source(t, events, rate, per_second)).sink("sellers", JsonLines(out, mode="replace"))
    return t
