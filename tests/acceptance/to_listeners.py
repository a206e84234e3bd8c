"""Counts of words, pushed to those who listen and landed in a file."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, SseSink, WebSocketSink
from esault.sources import Items, Paced

WORDS = 40


class Count(Bolt):
    def __init__(self) -> None:
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, [value, self.total])


def topology(port: int, web_socket_port: int, out: str, rows: int = 6000, name: str = "to_listeners") -> Topology:
    """Return it; `rows` come in three seconds."""
    t = Topology(name)
    words = t.spout("words", Paced(Items(lambda: ((f"w{n % WORDS}", n) for n in range(rows))), rate=rows / 3))
    counts = words.bolt("count", Count, grouping=by_key(), max_parallelism=4)
    counts.sink("push", SseSink(port, start="earliest", buffer=100_000))
    counts.sink("messages", WebSocketSink(web_socket_port, start="earliest", buffer=100_000))
    counts.sink("all", JsonLines(out))
    return t
