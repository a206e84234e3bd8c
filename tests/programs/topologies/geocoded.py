"""`async def process` with a client that answers later; each object counts its own calls, and keeps the client out of its state."""

import asyncio
import random

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Service:
    """Stands for a client of yours."""

    def __init__(self):
        self.lock = asyncio.Lock()

    async def ask(self, street, no):
        async with self.lock:
            await asyncio.sleep(0)
        await asyncio.sleep(0.001 * (no % 3))
        return {"at": (len(street), no * 2), "ok": no % 7 != 0}


class Geocode(Bolt):
    def __init__(self):
        self.calls = 0
        self.known = {}

    async def open(self, context):
        self.service = Service()

    def __getstate__(self):
        return {"calls": self.calls, "known": self.known}

    async def process(self, key, value):
        if value not in self.known:
            answer = await asyncio.wait_for(self.service.ask(key, value), timeout=5)
            self.calls += 1
            self.known[value] = answer["at"] if answer["ok"] else None
        self.emit(key, (value, self.known[value], self.calls))


def addresses(size):
    rng = random.Random(12)
    return [
        (rng.choice(["Oak", "Elm", "Long Lane", "Hill"]) + f" {rng.randrange(5)}", rng.randrange(30))
        for _ in range(size)
    ]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("geocoded")
    rows = t.spout("addresses", Paced(Items(addresses(size)), rate))
    rows.bolt("geocode", Geocode, by_key(), concurrency=16).sink("places", JsonLines(f"{out}/places.jsonl"))
    return t


def expected(size):
    asked, rows = {}, []
    for street, no in addresses(size):
        numbers = asked.setdefault(street, set())
        numbers.add(no)
        rows.append((street, (no, (len(street), no * 2) if no % 7 else None, len(numbers))))
    return {"places": rows}
