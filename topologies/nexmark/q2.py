"""Nexmark query 2: the bids on some auctions, those whose number is a multiple of 123.

A filter that leaves few. Out come (auction, price in cents) in `out/nexmark/q2.jsonl`.

    esault run topologies/nexmark/q2.py
"""

from nexmark_events import Bid
from nexmark_source import bids, source

from esault import Stream, Topology
from esault.sinks import JsonLines

__all__ = ["query", "topology"]

EACH = 123


def query(events: Stream) -> Stream:
    some = bids(events).filter(lambda bid: bid[Bid.AUCTION] % EACH == 0)
    return some.key_by(lambda bid: bid[Bid.AUCTION]).map(lambda bid: bid[Bid.PRICE])


def topology(events: int = 100_000, rate: float = 0.0, out: str = "out/nexmark/q2.jsonl") -> Topology:
    """`rate`: events a second, 0: as fast as they are taken."""
    t = Topology("nexmark-q2")
    query(source(t, events, rate)).sink("bids", JsonLines(out, mode="replace"))
    return t
