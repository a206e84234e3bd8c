"""A sink with transactions and a source in files of SQLite, as a stranger would write them for a database and a broker."""

from __future__ import annotations

import os
import secrets
import sqlite3

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key


def connected(path):
    database = sqlite3.connect(path, timeout=30, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=OFF")  # kill -9 loses nothing by it
    database.executescript(
        "CREATE TABLE IF NOT EXISTS runs (run TEXT, lineage TEXT, resumed INT);"
        "CREATE TABLE IF NOT EXISTS txns (token TEXT PRIMARY KEY, lineage TEXT, state TEXT);"
        "CREATE TABLE IF NOT EXISTS rows (token TEXT, key TEXT, value INT);"
    )
    return database


class Transactions(Sink):
    """Rows belong to a transaction, open from its first row on. As with Kafka, one that stays open holds all readers back."""

    def __init__(self, path):
        self.path = path
        self.token = None

    def begin(self, run):
        self.lineage = run.lineage
        connected(self.path).execute("INSERT INTO runs VALUES (?, ?, ?)", (run.run, run.lineage, run.resumed))

    def open(self, context):
        self.database = connected(self.path)

    def write(self, rows):
        self.database.execute("BEGIN IMMEDIATE")
        if self.token is None:
            self.token = secrets.token_hex(8)
            self.database.execute("INSERT INTO txns VALUES (?, ?, 'open')", (self.token, self.context.lineage))
        self.database.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(self.token, r.key, r.value) for r in rows])
        self.database.execute("COMMIT")

    def prepare(self, epoch):
        token, self.token = self.token, None
        return token

    def commit(self, epoch, handle):
        if handle is not None:
            database = connected(self.path)
            found = database.execute("UPDATE txns SET state = 'committed' WHERE token = ?", (handle,)).rowcount
            database.close()
            assert found == 1, f"transaction {handle} is gone"

    def forget_staged(self, kept):
        database = connected(self.path)
        for (token,) in database.execute(
            "SELECT token FROM txns WHERE state = 'open' AND lineage = ?", (self.lineage,)
        ).fetchall():
            assert token not in kept
            database.execute("DELETE FROM rows WHERE token = ?", (token,))
            database.execute("UPDATE txns SET state = 'aborted' WHERE token = ?", (token,))


class Numbers(Spout):
    """Numbers, the last not before the file `gate` is there."""

    def __init__(self, n, gate):
        self.next, self.n, self.gate = 0, n, gate

    def read(self, limit):
        if self.next == self.n:
            raise EndOfStream
        end = self.n if os.path.exists(self.gate) else self.n - 1
        rows = [(f"k{i % 7}", i) for i in range(self.next, min(end, self.next + min(limit, 10)))]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Queue(Spout):
    """A queue that gives a message to one consumer, and to the next one where it was not acknowledged. Its positions are delivery tags."""

    seekable = False

    def __init__(self, path, gate):
        self.path, self.gate, self.given = path, gate, []

    def open(self, context):
        self.queue = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        self.consumer = 0

    def read(self, limit):
        rows = self.queue.execute(
            "SELECT id, value FROM queue WHERE NOT acked AND id > ? ORDER BY id LIMIT ?",
            (self.consumer, min(limit, 10)),
        ).fetchall()
        self.ids = [str(number) for number, _ in rows]
        self.given += [number for number, _ in rows]
        if rows:
            self.consumer = rows[-1][0]
        elif os.path.exists(self.gate):
            raise EndOfStream
        return [(f"k{number % 7}", value) for number, value in rows]

    def row_ids(self):
        return self.ids

    def position(self):  # counts from the start again in each object
        return len(self.given)

    def commit(self, position):
        self.queue.executemany("UPDATE queue SET acked = 1 WHERE id = ?", [(n,) for n in self.given[:position]])

    def close(self):
        self.queue.close()


def filled(path, n):
    """Put messages in a queue."""
    queue = sqlite3.connect(path, timeout=30, isolation_level=None)
    queue.execute("PRAGMA journal_mode=WAL")
    queue.execute("CREATE TABLE queue (id INTEGER PRIMARY KEY, value INT, acked INT DEFAULT 0)")
    queue.execute("BEGIN")
    queue.executemany("INSERT INTO queue (value) VALUES (?)", [(i,) for i in range(n)])
    queue.execute("COMMIT")
    queue.close()


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def transactions(name: str = "transactions", folder: str = "", n: int = 2000) -> Topology:
    t = Topology(name)
    numbers = t.spout("numbers", Numbers(n, f"{folder}/gate"))
    numbers.bolt("same", Same, by_key(), parallelism=2).sink("out", Transactions(f"{folder}/out.db"))
    return t


def tagged(name: str = "tagged", folder: str = "") -> Topology:
    t = Topology(name)
    queue = t.spout("queue", Queue(f"{folder}/queue.db", f"{folder}/gate"))
    queue.bolt("same", Same, by_key(), parallelism=2).sink("out", Transactions(f"{folder}/out.db"))
    return t
