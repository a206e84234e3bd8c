"""Nexmark query 1: every bid's price in euros instead of dollars.

The smallest query: one function for each bid, no state. Shows also what becomes of events that are broken (`--set
malformed=0.001`): the function raises for them, and they land in `out/nexmark/q1_bad.N.jsonl`, a file for each sub-unit, with the traceback instead of
stopping the run. Out come (auction, (bidder, price in euro cents, time in ms)) in `out/nexmark/q1.jsonl`.

    esault run topologies/nexmark/q1.py
"""

from nexmark_events import TIME, Bid
from nexmark_source import bids, source

from esault import Stream, Topology, dead_letter
from esault.sinks import JsonLines

__all__ = ["query", "topology"]

RATE = 0.908


def query(events: Stream, bad: str = "out/nexmark/q1_bad.jsonl") -> Stream:
    prices = bids(events).map(
        lambda bid: (bid[Bid.AUCTION], bid[Bid.BIDDER], RATE * bid[Bid.PRICE], bid[TIME]), on_error=dead_letter(bad)
    )
    return prices.key_by(lambda bid: bid[0]).map(lambda bid: bid[1:])


def topology(
    events: int = 100_000,
    rate: float = 0.0,
    malformed: float = 0.0,
    out: str = "out/nexmark/q1.jsonl",
    bad: str = "out/nexmark/q1_bad.jsonl",
) -> Topology:
    """`rate`: events a second, 0: as fast as they are taken; `malformed`: the share of broken events."""
    t = Topology("nexmark-q1")
    query(source(t, events, rate, malformed=malformed), bad).sink("prices", JsonLines(out, mode="replace"))
    return t
