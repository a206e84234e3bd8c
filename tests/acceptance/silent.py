"""A source that gives some tuples and then is silent until a file is there, and windows that write down when they close."""

from __future__ import annotations

from pathlib import Path

from esault import Bolt, EndOfStream, Spout, Topology, shuffle
from esault.sinks import JsonLines
from esault.windows import Idle, TumblingWindow


class Silent(Spout):
    """Two tuples and no more; it ends when the file is there."""

    def __init__(self, end):
        self.end = Path(end)
        self.next = 0

    def read(self, limit):
        if self.next < 2:
            self.next += 1
            return [("shop", {"at": self.next, "paid": self.next})]
        if self.end.exists():
            raise EndOfStream
        return []

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Takings(Bolt):
    def __init__(self):
        self.paid = 0

    def process(self, shop, payment):
        self.paid += payment["paid"]

    def finish(self):
        self.emit(self.key, {"from": self.window.start, "paid": self.paid})


class Note(Bolt):
    def __init__(self, said):
        self.said = said

    def process(self, shop, takings):
        Path(self.said).touch()
        self.emit(shop, takings)


def topology(name: str, end: str, out: str, said: str) -> Topology:
    t = Topology(name)
    payments = t.spout("payments", Silent(end), time=lambda value: value["at"], idle=Idle(0.5, advance=True))
    takings = payments.window("takings", Takings, TumblingWindow(10))
    takings.bolt("note", lambda: Note(said), grouping=shuffle()).sink("out", JsonLines(out))
    return t
