"""A machine of states: a dict of the bolt's own bound methods says what to do, a NamedTuple is what comes and goes."""

import random
from enum import IntEnum
from typing import NamedTuple

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Event(NamedTuple):
    kind: str
    number: int = 0


class Door(IntEnum):
    CLOSED = 0
    OPEN = 1
    LOCKED = 2


class Machine(Bolt):
    def __init__(self):
        self.state = Door.CLOSED
        self.last = Event("none")
        self.refused = 0
        self.handlers = {
            ("open", Door.CLOSED): self.opened,
            ("close", Door.OPEN): self.closed,
            ("lock", Door.CLOSED): self.locked,
            ("unlock", Door.LOCKED): self.closed,
        }
        self.otherwise = self.no

    def opened(self, event):
        self.state = Door.OPEN

    def closed(self, event):
        self.state = Door.CLOSED

    def locked(self, event):
        self.state = Door.LOCKED

    def no(self, event):
        self.refused += event.number

    def process(self, key, value):
        self.handlers.get((value.kind, self.state), self.otherwise)(value)
        self.emit(key, Event(f"{self.last.kind}>{self.state.name}", self.refused))
        self.last = value


def events(size):
    rng = random.Random(4)
    return [
        (rng.randrange(30), Event(rng.choice(["open", "close", "lock", "unlock"]), rng.randrange(5)))
        for _ in range(size)
    ]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("doors")
    t.spout("events", Paced(Items(events(size)), rate)).bolt("machine", Machine, by_key()).sink(
        "doors", JsonLines(f"{out}/doors.jsonl")
    )
    return t


def expected(size):
    where, refused, last, rows = {}, {}, {}, []
    moves = {
        "open": ("CLOSED", "OPEN"),
        "close": ("OPEN", "CLOSED"),
        "lock": ("CLOSED", "LOCKED"),
        "unlock": ("LOCKED", "CLOSED"),
    }
    for door, event in events(size):
        before, after = moves[event.kind]
        if where.get(door, "CLOSED") == before:
            where[door] = after
        else:
            refused[door] = refused.get(door, 0) + event.number
        rows.append((door, Event(f"{last.get(door, 'none')}>{where.get(door, 'CLOSED')}", refused.get(door, 0))))
        last[door] = event.kind
    return {"doors": rows}
