"""Nexmark query 5: the auctions with the most bids of the last ten seconds, every two seconds.

Two windows, one behind the other: a sliding window counts the bids of each auction, on as many sub-units as need be; then one
object for each instant keeps the auctions with the greatest count. The counts leave the first window when event time has passed its
end, and are on time for the second, since event time flows on behind them. Out come (end of the window in seconds, (bids,
auction)) in `out/nexmark/q5.jsonl`, several where auctions draw.

    esault run topologies/nexmark/q5.py
"""

from nexmark_events import Bid
from nexmark_source import bids, seconds, source

from esault import Bolt, Stream, Topology
from esault.sinks import JsonLines
from esault.windows import SlidingWindow, TumblingWindow

__all__ = ["Best", "query", "topology"]


class Count(Bolt):
    """The bids on an auction in a window."""

    def __init__(self):
        self.bids = 0

    def process(self, key, value):
        self.bids += 1

    def combine(self, other):
        """So that a bid is counted once for the five windows that it is in."""
        self.bids += other.bids

    def finish(self):
        self.emit(self.window.end, (self.bids, self.key, self.window.end))


class Best(Bolt):
    """Of tuples that begin with a number, those that have the greatest."""

    def __init__(self):
        self.best = ()

    def process(self, key, value):
        if not self.best or value[0] > self.best[0][0]:
            self.best = (value,)
        elif value[0] == self.best[0][0]:
            self.best += (value,)

    def finish(self):
        for each in self.best:
            self.emit(self.key, each)


def query(events: Stream, size: float = 10.0, every: float = 2.0, lateness: float = 0.0) -> Stream:
    by_auction = bids(events).key_by(lambda bid: bid[Bid.AUCTION])
    counts = by_auction.window(
        "count", Count, SlidingWindow(size, every), time=seconds, lateness=lateness, max_parallelism=8
    )
    # Keyed by the end of their window, counts are of one time: the middle of the slice that it ends with.
    hottest = counts.window("hottest", Best, TumblingWindow(every), time=lambda count: count[2] - every / 2)
    return hottest.map(lambda count: count[:2])


def topology(
    events: int = 100_000,
    rate: float = 0.0,
    per_second: float = 1000.0,
    out: str = "out/nexmark/q5.jsonl",
) -> Topology:
    """`rate`: events a second, 0: as fast as they are taken; `per_second`: events in a second of their own time."""
    t = Topology("nexmark-q5")
    query(source(t, events, rate, per_second)).sink("hottest", JsonLines(out, mode="replace"))
    return t
