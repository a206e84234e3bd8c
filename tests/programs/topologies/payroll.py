"""Several inputs to one bolt, streams beside the main one, json and dead letters for what is wrong."""

import json
import random

from esault import Bolt, Topology, by_key, dead_letter
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def hours(size):
    rng = random.Random(26)
    return [
        (None, json.dumps({"who": rng.randrange(20), "hours": rng.choice([4, 8, 9, -1, "x"])})) for _ in range(size)
    ]


def bonuses(size):
    rng = random.Random(27)
    return [(None, json.dumps({"who": rng.randrange(20), "bonus": rng.randrange(50)})) for _ in range(size // 2)]


class Pay(Bolt):
    def __init__(self):
        self.hours = 0
        self.extra = {"hours": [], "bonus": []}

    def process_stream(self, stream, key, value):
        if stream == "hours":
            if value["hours"] < 0:
                raise ValueError(f"{key} worked {value['hours']} hours")
            self.hours += min(value["hours"], 8)
            if value["hours"] > 8:
                self.extra["hours"].append(value["hours"] - 8)
                self.emit(key, len(self.extra["hours"]), stream="overtime")
        else:
            self.extra["bonus"].append(value["bonus"])
            self.emit(key, value["bonus"], stream="bonus")

    def finish(self):
        self.emit(self.key, {"pay": self.hours * 20 + sum(self.extra["bonus"]) + sum(self.extra["hours"]) * 30})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("payroll")
    sources = {}
    for name, rows in (("hours", hours(size)), ("bonuses", bonuses(size))):
        parsed = t.spout(name, Paced(Items(rows), rate)).map(json.loads).key_by(lambda value: value["who"])
        sources[parsed] = by_key()
    pay = t.bolt("pay", Pay, inputs=sources, streams=("overtime", "bonus"), on_error=dead_letter(f"{out}/dead.jsonl"))
    pay.sink("pay-out", JsonLines(f"{out}/pay-out.jsonl"))
    pay["overtime"].sink("overtime", JsonLines(f"{out}/overtime.jsonl"))
    pay["bonus"].sink("bonus", JsonLines(f"{out}/bonus.jsonl"))
    return t


def expected(size):
    pay, over, overtime, bonus = {}, {}, [], []
    for _, line in hours(size):
        row = json.loads(line)
        if row["hours"] in (-1, "x"):
            pay.setdefault(row["who"], 0)
            continue
        pay[row["who"]] = pay.get(row["who"], 0) + min(8, row["hours"]) * 20 + max(0, row["hours"] - 8) * 30
        if row["hours"] > 8:
            over[row["who"]] = over.get(row["who"], 0) + 1
            overtime.append((row["who"], over[row["who"]]))
    for _, line in bonuses(size):
        row = json.loads(line)
        pay[row["who"]] = pay.get(row["who"], 0) + row["bonus"]
        bonus.append((row["who"], row["bonus"]))
    return {"pay-out": [(who, {"pay": n}) for who, n in pay.items()], "overtime": overtime, "bonus": bonus}
