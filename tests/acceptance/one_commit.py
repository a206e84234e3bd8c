"""Sinks as a stranger writes them: one commits to SQLite for the whole run, one is a client of a slow server, with async hooks."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import uuid
from contextlib import closing

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key


def connected(path):
    made = sqlite3.connect(path, timeout=30, isolation_level=None)
    made.execute("create table if not exists staged (handle, lineage, key, value)")
    made.execute("create table if not exists shown (version, key, value)")
    made.execute("create table if not exists versions (version, handles)")
    return closing(made)


def die_at(path, step):
    """End this process where the test says so, once."""
    try:
        os.unlink(f"{path}.die-{step}")
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Versions(Sink):
    """Rows are staged by sub-units, and a version of all of them is made in one place."""

    def __init__(self, path):
        self.path = path

    def begin(self, run):
        self.lineage = run.lineage
        self.database = sqlite3.connect(self.path)  # stays in the thread that made it

    def open(self, context):
        self.rows = []

    def write(self, rows):
        self.rows += [(row.key, row.value) for row in rows]

    def prepare(self, epoch):
        return self.stage()

    def stage(self):
        handle, rows = str(uuid.uuid4()), self.rows
        self.rows = []
        with connected(self.path) as database:
            database.execute("begin immediate")
            staged = [(handle, self.context.lineage, key, value) for key, value in rows]
            database.executemany("insert into staged values (?, ?, ?, ?)", staged)
            database.execute("commit")
        die_at(self.path, "prepare")
        return handle

    def commit_all(self, epoch, handles):
        self.database.execute("select 1")
        die_at(self.path, "before")
        with connected(self.path) as database:
            database.execute("begin immediate")
            moved = 0
            for handle in handles:
                found = "select ?, key, value from staged where handle = ?"
                moved += database.execute(f"insert into shown {found}", (epoch, handle)).rowcount
                database.execute("delete from staged where handle = ?", (handle,))
            if moved:
                database.execute("insert into versions values (?, ?)", (epoch, len(handles)))
            die_at(self.path, "within")
            database.execute("commit")
        die_at(self.path, "commit")

    def forget_staged(self, kept):
        with connected(self.path) as database:
            database.execute("delete from staged where lineage = ?", (self.lineage,))

    def end(self, ok):
        self.database.close()


class Service(Versions):
    """Its server takes its time."""

    async def write(self, rows):
        await asyncio.sleep(0.001)
        self.rows += [(row.key, row.value) for row in rows]

    async def prepare(self, epoch):
        await asyncio.sleep(0.1)
        return await asyncio.to_thread(self.stage)

    async def commit_all(self, epoch, handles):
        await asyncio.sleep(0.1)
        super().commit_all(epoch, handles)

    async def begin(self, run):
        super().begin(run)

    async def end(self, ok):
        super().end(ok)


class Numbers(Spout):
    """Numbers, up to the one that stands in the file `gate`."""

    def __init__(self, n, gate):
        self.next, self.n, self.gate = 0, n, gate

    def read(self, limit):
        if self.next == self.n:
            raise EndOfStream
        with open(self.gate) as gate:
            end = int(gate.read() or 0)
        rows = [(i % 7, i) for i in range(self.next, min(end, self.next + min(limit, 10)))]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def rows(path):
    with connected(path) as database:
        return sorted(value for (value,) in database.execute("select value from shown"))


def topology(out: str, kind: str = "Versions", n: int = 100_000, name: str = "one_commit") -> Topology:
    t = Topology(name)
    sink = {"Versions": Versions, "Service": Service}[kind](out)
    t.spout("numbers", Numbers(int(n), f"{out}.gate")).bolt("same", Same, by_key(), parallelism=2).sink("out", sink)
    return t
