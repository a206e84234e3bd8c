"""The topology that the files of deploy/ run, without end: put your own in its place."""

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Ticker

WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "sat", "on", "the", "cat"]


class Count(Bolt):
    """How often each word has come."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.context.counter("words", "Words that came").inc()
        self.emit(key, {"word": key, "n": self.n})


def topology(out: str = "out", every: float = 0.1) -> Topology:
    t = Topology("words")
    words = t.spout("ticks", Ticker(every)).key_by(lambda at: WORDS[int(at / every) % len(WORDS)])
    words.bolt("count", Count, by_key()).sink("counts", JsonLines(f"{out}/counts.jsonl"))
    return t
