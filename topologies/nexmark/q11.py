"""Nexmark query 11: how many bids does each bidder make before they pause for ten seconds?

Session windows. Shows also what becomes of events out of order: with `--set disorder=1000` a thousand events at a time come mixed up;
those that are more than `lateness` seconds behind the newest and fall into no session that is still open have missed theirs, and
land in `out/nexmark/q11_late.jsonl`. Out come (bidder, (bids, first, last)) in `out/nexmark/q11.jsonl`, times in ms since the epoch.

    esault run topologies/nexmark/q11.py --set disorder=1000 --set lateness=0.2
"""

from nexmark_events import TIME, Bid
from nexmark_source import bids, seconds, source

from esault import Bolt, Stream, Topology
from esault.sinks import JsonLines
from esault.windows import SessionWindow

__all__ = ["query", "topology"]


class Session(Bolt):
    """The bids of a bidder without a long pause between them; one behind the watermark comes after those of later times."""

    def __init__(self):
        self.bids = 0
        self.first = self.last = None

    def process(self, key, value):
        self.bids += 1
        time = value[TIME]
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)

    def finish(self):
        self.emit(self.key, (self.bids, self.first, self.last))


def query(events: Stream, gap: float = 10.0, lateness: float = 0.0) -> Stream:
    by_bidder = bids(events).key_by(lambda bid: bid[Bid.BIDDER])
    return by_bidder.window("sessions", Session, SessionWindow(gap), time=seconds, lateness=lateness, max_parallelism=8)


def topology(
    events: int = 100_000,
    rate: float = 0.0,
    per_second: float = 1000.0,
    gap: float = 10.0,
    disorder: int = 0,
    lateness: float = 0.0,
    out: str = "out/nexmark/q11.jsonl",
    late: str = "out/nexmark/q11_late.jsonl",
) -> Topology:
    """`rate`: events a second, 0: as fast as they are taken; `per_second`: events in a second of their own time."""
    t = Topology("nexmark-q11")
    sessions = query(source(t, events, rate, per_second, disorder), gap, lateness)
    sessions.sink("sessions", JsonLines(out, mode="replace"))
    sessions["late"].map(lambda bid: bid[TIME]).sink("late", JsonLines(late, mode="replace"))
    return t
