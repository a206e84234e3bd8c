"""A client opened in `open` and kept out of `__getstate__`: SQLite as an index in memory, filled anew wherever the object comes."""

import random
import sqlite3
import threading

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def notes(size):
    rng = random.Random(31)
    return [
        (f"user-{rng.randrange(6)}", {"text": " ".join(rng.choices(["milk", "tea", "rent", "gym"], k=2)), "no": i})
        for i in range(size)
    ]


class Search(Bolt):
    def __init__(self):
        self.notes = []

    def open(self, context):
        self.lock = threading.Lock()
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table notes (no integer, text text)")
        self.db.executemany("insert into notes values (:no, :text)", self.notes)
        self.log = context.logger

    def close(self):
        self.db.close()

    def __getstate__(self):
        state = dict(self.__dict__)
        for name in ("lock", "db", "log"):
            state.pop(name, None)
        return state

    def process(self, key, value):
        self.notes.append(value)
        with self.lock:
            self.db.execute("insert into notes values (:no, :text)", value)
            word = value["text"].split()[0]
            ((n, last),) = self.db.execute("select count(*), max(no) from notes where text like ?", (f"%{word}%",))
        self.emit(key, {"word": word, "found": n, "last": last, "all": len(self.notes)})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("notes")
    t.spout("notes", Paced(Items(notes(size)), rate)).bolt("search", Search, by_key()).sink(
        "found", JsonLines(f"{out}/found.jsonl")
    )
    return t


def expected(size):
    seen, rows = {}, []
    for user, note in notes(size):
        mine = seen.setdefault(user, [])
        mine.append(note)
        word = note["text"].split()[0]
        hits = [each["no"] for each in mine if word in each["text"]]
        rows.append((user, {"word": word, "found": len(hits), "last": max(hits), "all": len(mine)}))
    return {"found": rows}
