"""A heap of tasks with an order of their own, and the running worst of them: heapq on objects, ties broken by itertools.count."""

import heapq
import itertools
import random
from dataclasses import dataclass, field

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


@dataclass(order=True)
class Task:
    priority: int
    number: int
    name: str = field(compare=False, default="")


class Queue(Bolt):
    """Two tasks in, one out."""

    def __init__(self):
        self.heap = []
        self.numbers = itertools.count(1)
        self.waiting = None

    def process(self, key, value):
        heapq.heappush(self.heap, Task(value["priority"], next(self.numbers), value["name"]))
        if len(self.heap) % 2 == 0:
            task = heapq.heappop(self.heap)
            self.waiting = self.heap[0] if self.heap else None
            self.emit(key, {"task": task, "left": len(self.heap), "next": self.waiting and self.waiting.name})

    def finish(self):
        while self.heap:
            self.emit(self.key, {"task": heapq.heappop(self.heap), "left": len(self.heap), "next": None})


def tasks(size):
    rng = random.Random(6)
    return [(f"q{rng.randrange(8)}", {"priority": rng.randrange(20), "name": f"t{i}"}) for i in range(size)]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("task-queue")
    queue = t.spout("tasks", Paced(Items(tasks(size)), rate)).bolt("queue", Queue, by_key())
    queue.sink("done", JsonLines(f"{out}/done.jsonl"))
    return t


def expected(size):
    queues, counts, rows = {}, {}, []
    for name, task in tasks(size):
        counts[name] = counts.get(name, 0) + 1
        queue = queues.setdefault(name, [])
        queue.append(Task(task["priority"], counts[name], task["name"]))
        queue.sort()
        if len(queue) % 2 == 0:
            first = queue.pop(0)
            rows.append((name, {"task": first, "left": len(queue), "next": queue[0].name if queue else None}))
    for name, queue in queues.items():
        rows += [(name, {"task": task, "left": len(queue) - i - 1, "next": None}) for i, task in enumerate(queue)]
    return {"done": rows}
