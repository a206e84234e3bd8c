"""Nexmark query 3: who sells something of category 10 in Oregon, Idaho or California?

A join without a window: an object for each seller keeps the person, or until they have signed up the auctions that came before
(ids run a little ahead). Out come (auction, (name, city, state)) in `out/nexmark/q3.jsonl`.

    esault run topologies/nexmark/q3.py
"""

from nexmark_events import AUCTION, KIND, PERSON, Auction, Person
from nexmark_source import source

from esault import Bolt, Stream, Topology, by_key
from esault.sinks import JsonLines

__all__ = ["query", "topology"]

CATEGORY, STATES = 10, ("OR", "ID", "CA")


class Sellers(Bolt):
    """One person, and what they sell."""

    def __init__(self):
        #: name, city and state; empty where they live elsewhere; None before they have signed up
        self.person = None
        self.waiting = ()

    def process(self, key, value):
        if value[KIND] == PERSON:
            here = value[Person.STATE] in STATES
            self.person = (value[Person.NAME], value[Person.CITY], value[Person.STATE]) if here else ()
            auctions, self.waiting = self.waiting, ()
        else:
            auctions = (value[Auction.ID],)
        if self.person is None:
            self.waiting += auctions
        elif self.person:
            for auction in auctions:
                self.emit(auction, self.person)


def wanted(event):
    """Return whether it can be part of a result."""
    return event[KIND] == PERSON or (event[KIND] == AUCTION and event[Auction.CATEGORY] == CATEGORY)


def query(events: Stream) -> Stream:
    halves = events.filter(wanted).key_by(lambda e: e[Person.ID] if e[KIND] == PERSON else e[Auction.SELLER])
    return halves.bolt("sellers", Sellers, by_key(), max_parallelism=8)


def topology(events: int = 100_000, rate: float = 0.0, out: str = "out/nexmark/q3.jsonl") -> Topology:
    """`rate`: events a second, 0: as fast as they are taken."""
    t = Topology("nexmark-q3")
    query(source(t, events, rate)).sink("sellers", JsonLines(out, mode="replace"))
    return t
