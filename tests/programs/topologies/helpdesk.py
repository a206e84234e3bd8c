"""A helpdesk as a script with classes: answers near each call (interval join, outer), calls that get worse (pattern) and that nobody answers (timers)."""

import random
from dataclasses import dataclass

from esault import Bolt, Topology, by_key, run
from esault.patterns import Pattern
from esault.sinks import JsonLines
from esault.sources import Items, Paced

LATENESS = 10
PATIENCE = 30


@dataclass(frozen=True)
class Call:
    at: int
    urgency: int


@dataclass(frozen=True)
class Answer:
    at: int
    agent: str


def calls(size):
    rng = random.Random(71)
    return [
        (f"customer-{rng.randrange(15)}", Call(max(0, i - rng.randrange(LATENESS)), rng.randrange(1, 5)))
        for i in range(size)
    ]


def answers(size):
    rng = random.Random(72)
    return [
        (f"customer-{rng.randrange(15)}", Answer(max(0, i - rng.randrange(LATENESS)), rng.choice(["ann", "bob"])))
        for i in range(0, size, 2)
    ]


class Overdue(Bolt):
    """Tells of calls that had no answer for PATIENCE seconds; a timer is taken back when one is there."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.answered: list[int] = []

    def process_stream(self, stream, customer, value):
        if stream == "calls":
            self.open[value.at] = self.open.get(value.at, 0) + 1
            self.timer(str(value.at), value.at + PATIENCE)
        else:
            self.answered.append(value.at)
        for at in [at for at in self.open if any(at <= time < at + PATIENCE for time in self.answered)]:
            del self.open[at]
            self.cancel_timer(str(at))
        newest = self.context.watermark(customer)
        self.answered = [time for time in self.answered if time >= newest - 1]

    def on_timer(self, name, at):
        self.emit(self.key, (at - PATIENCE, self.open.pop(at - PATIENCE)))


class Helpdesk:
    def __init__(self, size: int, rate: float, out: str) -> None:
        self.size, self.rate, self.out = size, rate, out
        self.t = Topology("helpdesk")

    def file(self, name: str) -> JsonLines:
        return JsonLines(f"{self.out}/{name}.jsonl")

    def build(self) -> Topology:
        def read(name, rows, rate):
            return self.t.spout(name, Paced(Items(rows), rate), time=lambda value: value.at, lateness=LATENESS)

        called = read("calls", calls(self.size), self.rate)
        answered = read("answers", answers(self.size), self.rate / 2)
        called.join("talks", answered, within=(0, 12), kind="outer").sink("talked", self.file("talked"))
        worse = (
            Pattern[Call]()
            .begin("first", lambda call: call.urgency < 4)
            .next("worse", lambda call, so_far: call.urgency > so_far["first"][0].urgency)
        )
        growing = called.pattern("growing", worse.within(25), parallelism=2)
        growing.sink("grew", self.file("grew"))
        growing["timed_out"].sink("calmed", self.file("calmed"))
        late = self.t.bolt("overdue", Overdue, {called: by_key(), answered: by_key()})
        late.sink("waited", self.file("waited"))
        return self.t


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    return Helpdesk(size, rate, out).build()


def expected(size):
    talked, grew, calmed, waited, near = [], [], [], {}, set()
    for customer, call in calls(size):
        mine = [(i, a) for i, (who, a) in enumerate(answers(size)) if who == customer]
        found = [(i, a) for i, a in mine if call.at <= a.at <= call.at + 12]
        near.update(i for i, _ in found)
        talked += [(customer, (call, a)) for _, a in found] or [(customer, (call, None))]
        if not any(call.at <= a.at < call.at + PATIENCE for _, a in mine):
            waited[customer, call.at] = waited.get((customer, call.at), 0) + 1
    talked += [(who, (None, a)) for i, (who, a) in enumerate(answers(size)) if i not in near]
    for customer in {who for who, _ in calls(size)}:
        mine = sorted((call for who, call in calls(size) if who == customer), key=lambda call: call.at)
        for first, then in zip(mine, [*mine[1:], None]):
            if first.urgency < 4 and (then is None or then.at - first.at >= 25):
                calmed.append((customer, {"first": [first]}))
            elif first.urgency < 4 and then.urgency > first.urgency:
                grew.append((customer, {"first": [first], "worse": [then]}))
    told = [(customer, (at, n)) for (customer, at), n in waited.items()]
    return {"talked": talked, "grew": grew, "calmed": calmed, "waited": told}


if __name__ == "__main__":
    print(run(topology, params={"size": 500}))
