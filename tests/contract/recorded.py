"""A spout and a sink that write down in a file each call of a hook, and what order of calls is legal.

What the classes `Spout` and `Sink` say of the order is here once more, as a machine with few states.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from itertools import count
from pathlib import Path

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key
from esault.sources import MicroBatches, Paced

_numbers = count(1)


#: the file that was written last, which stays open: a spout that waits is called some thousand times a second
_open: tuple[str, int] = ("", -1)


def append(path, line):
    """Add a line to a file in one write, so that it is there when the process dies in the next moment."""
    global _open
    if _open[0] != str(path):
        if _open[0]:
            os.close(_open[1])
        _open = (str(path), os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
    os.write(_open[1], line.encode())


class Recorded:
    """Names each object by its process and a number, made when the first of its hooks is called."""

    said: str
    name: str = ""

    def note(self, hook, **more):
        if not self.name.startswith(f"{os.getpid()}-"):
            self.name = f"{os.getpid()}-{next(_numbers)}"
        line = {"who": self.name, "kind": type(self).__name__, "hook": hook, **more}
        append(self.said, json.dumps(line) + "\n")


class Stream(Recorded, Spout):
    """Numbers, some each millisecond, the last not before the file `gate` is there; cannot go on after a restart."""

    parallel = True

    def __init__(self, said, n, fails="", gate=""):
        self.said, self.n, self.fails, self.gate = said, n, fails, gate
        self.next = 0

    def note(self, hook, **more):
        super().note(hook, **more)
        if hook == self.fails and self.next > self.n // 2:
            raise ValueError(f"{hook} fails")

    def check(self):
        self.note("check")

    def open(self, context):
        self.note("open")
        self.begun = context.now()

    def read(self, limit):
        if self.next >= self.n:
            self.note("read", rows=-1)
            raise EndOfStream
        end = self.n if not self.gate or os.path.exists(self.gate) else self.n - 1
        most = min(limit, end - self.next, 1 + int((self.context.now() - self.begun) * 1000) - self.next, 16)
        rows = [(i % 7, i) for i in range(self.next, self.next + max(0, most))]
        self.note("read", rows=len(rows))
        self.next += len(rows)
        return rows

    def commit(self, position):
        self.note("commit")

    def due(self):
        self.note("due")
        return

    def progress(self):
        self.note("progress")
        return self.next, self.n

    def lag(self):
        self.note("lag")
        return 0

    def close(self):
        self.note("close")


class Numbers(Stream):
    """The same, and it can go on."""

    def position(self):
        self.note("position")
        return self.next

    def seek(self, position):
        self.note("seek")
        self.next = position
        self.begun = self.context.now() - position / 1000


class Queue(Stream):
    """The same, of a queue: it cannot go on, and is told what it may forget."""

    seekable = False

    def position(self):
        self.note("position")
        return self.next


class Rows(Recorded, Sink):
    def __init__(self, said):
        self.said = said

    def check(self):
        self.note("check")

    def begin(self, run):
        self.note("begin")

    def end(self, ok):
        self.note("end")

    def open(self, context):
        self.note("open")

    def write(self, rows):
        self.note("write")

    def prepare(self, epoch):
        self.note("prepare", epoch=epoch)
        return f"{self.name}:{epoch}"

    def commit(self, epoch, handle):
        self.note("commit", epoch=epoch, own=handle == f"{self.name}:{epoch}")

    def forget_staged(self):
        self.note("forget_staged")

    def close(self):
        self.note("close")


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, self.total)


SPOUTS = {
    "numbers": Numbers,
    "stream": Stream,
    "queue": Queue,
    "paced": lambda *of: Paced(Numbers(*of), rate=5000),
    "windows": lambda *of: MicroBatches(Numbers(*of), window=0.02, slice=0.01),
}


def topology(
    said: str, spout: str = "numbers", n: int = 250, fails: str = "", name: str = "recorded", gate: str = ""
) -> Topology:
    t = Topology(name)
    numbers = t.spout("numbers", SPOUTS[spout](said, n, fails, gate))
    numbers.sink("read", Rows(said))
    numbers.bolt("count", Count, by_key(), parallelism=2).sink("counts", Rows(said))
    return t


# what is legal ---------------------------------------------------------------------------------


def of_each(said):
    """The calls of each object, in order: (kind, calls) by name."""
    found = defaultdict(list)
    for line in map(json.loads, Path(said).read_text().splitlines()):
        found[line["kind"], line["who"]].append(line)
    return found


def illegal(said, spark=False):
    """What must not have been, of all objects. On Spark a sink is opened and closed with each batch."""
    wrong = []
    for (kind, who), calls in of_each(said).items():
        judge = SinkCalls(spark) if kind == "Rows" else SpoutCalls()
        for number, call in enumerate(calls):
            if not judge.may(call):
                before = [each["hook"] for each in calls[max(0, number - 5) : number]]
                wrong.append(f"{kind} {who}: {call} behind {before}")
                break
    return wrong


class SpoutCalls:
    """`check` on an object of its own; `open`; `seek` at once or never; then `read`, and the others between; last `close`."""

    state = "new"
    rows = 0

    def may(self, call):
        hook, state = call["hook"], self.state
        if hook == "check":
            return state == "new"
        if hook == "open":
            self.state = "open"
            return state == "new"
        if hook == "seek":
            self.state = "reading"
            return state == "open"
        if hook == "close":
            self.state = "closed"
            return state in ("open", "reading", "ended")
        if hook == "read":
            self.rows = call["rows"]
            self.state = "ended" if self.rows < 0 else "reading"
            return state in ("open", "reading")
        if hook == "due":
            return state == "reading" and self.rows > 0
        return state in ("open", "reading", "ended")  # position, commit, progress, lag


class SinkCalls:
    """In the driver's process `check`, `begin`, then `commit` and `forget_staged` of what others prepared, `end`; in each other `open`, rounds, `close`."""

    epoch = -1

    def __init__(self, spark):
        self.spark, self.state = spark, "new"

    def may(self, call):
        hook, state = call["hook"], self.state
        if hook == "check":
            return state == "new"
        if hook == "begin":
            self.state = "begun"
            return state == "new"
        if hook == "end":
            self.state = "over"
            return state == "begun"
        if hook == "forget_staged":
            return state == "begun"
        if hook == "open":
            self.state, self.epoch = "open", -1
            return state == "new" or (self.spark and state == "closed")
        if hook == "close":
            self.state = "closed"
            return state == "open"
        if hook == "prepare":
            later, self.epoch = call["epoch"] > self.epoch, call["epoch"]
            return state == "open" and later
        if hook == "commit":
            return (state == "open" and call["own"]) or (state == "begun" and not call["own"])
        return state == "open"  # write
