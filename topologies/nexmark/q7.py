"""Nexmark query 7: the highest bid of every ten seconds.

First the highest of each auction and window, on as many sub-units as need be, then the highest of these: so no unit gets all bids.
Out come (end of the window in seconds, (price in cents, auction, bidder)) in `out/nexmark/q7.jsonl`, several where bids draw.

    esault run topologies/nexmark/q7.py
"""

from nexmark_events import Bid
from nexmark_source import bids, seconds, source
from q5 import Best

from esault import Stream, Topology
from esault.sinks import JsonLines
from esault.windows import TumblingWindow

__all__ = ["query", "topology"]


class Highest(Best):
    """The highest bids on an auction in a window."""

    def process(self, key, value):
        super().process(key, (value[Bid.PRICE], key, value[Bid.BIDDER], self.window.end))

    def finish(self):
        for each in self.best:
            self.emit(self.window.end, each)


def query(events: Stream, size: float = 10.0, lateness: float = 0.0) -> Stream:
    by_auction = bids(events).key_by(lambda bid: bid[Bid.AUCTION])
    of_auctions = by_auction.window(
        "of-auctions", Highest, TumblingWindow(size), time=seconds, lateness=lateness, max_parallelism=8
    )
    highest = of_auctions.window("highest", Best, TumblingWindow(size), time=lambda bid: bid[3] - size / 2)
    return highest.map(lambda bid: bid[:3])


def topology(
    events: int = 100_000,
    rate: float = 0.0,
    per_second: float = 1000.0,
    out: str = "out/nexmark/q7.jsonl",
) -> Topology:
    """`rate`: events a second, 0: as fast as they are taken; `per_second`: events in a second of their own time."""
    t = Topology("nexmark-q7")
    query(source(t, events, rate, per_second)).sink("highest", JsonLines(out, mode="replace"))
    return t
