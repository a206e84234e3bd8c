"""A queue that forgets what is acknowledged, a spout of it, and a sink that stages rows in a database: as a stranger writes them."""

from __future__ import annotations

import json
import socket
import socketserver
import sqlite3
import threading
import uuid
from collections import deque
from contextlib import closing

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key


class Queue:
    """The server: messages with numbers, in order; what was given and not acknowledged comes again when its connection is gone."""

    def __init__(self, count):
        self.waiting, self.given, self.again = deque(range(1, count + 1)), {}, 0
        self.lock = threading.Lock()
        #: messages up to this number are given; the end comes behind the last one
        self.upto, self.count = 0, count
        queue = self

        class Client(socketserver.StreamRequestHandler):
            def handle(self):
                try:
                    for line in self.rfile:
                        self.wfile.write(json.dumps(queue.answer(self, **json.loads(line))).encode() + b"\n")
                except ConnectionError:
                    pass
                with queue.lock:
                    back = sorted(number for number, client in queue.given.items() if client is self)
                    queue.again += len(back)
                    queue.waiting.extendleft(reversed(back))
                    for number in back:
                        del queue.given[number]

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Client)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, client, get=0, ack=0):
        with self.lock:
            for number in [n for n in self.given if n <= ack]:
                del self.given[number]
            taken = []
            while len(taken) < get and self.waiting and self.waiting[0] <= self.upto:
                taken.append(self.waiting.popleft())
            self.given.update(dict.fromkeys(taken, client))
            return {"messages": taken, "over": self.upto == self.count and not self.waiting}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class FromQueue(Spout):
    """Messages of the queue. It cannot go back: the queue gives again what was not acknowledged."""

    seekable = False

    def __init__(self, port):
        self.port, self.last, self.known = port, 0, 0

    def open(self, context):
        self.connection = socket.create_connection(("127.0.0.1", self.port))
        self.file = self.connection.makefile("rw")

    def ask(self, **request):
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        return json.loads(self.file.readline())

    def read(self, limit):
        answer = self.ask(get=min(limit, 20))
        rows = [(number % 7, number) for number in answer["messages"] if number > self.known]
        if answer["messages"]:
            self.last = max(self.last, answer["messages"][-1])
        elif answer["over"]:
            raise EndOfStream
        return rows

    def position(self):
        return self.last

    def commit(self, position):
        if not self.last:  # an earlier process had read so far, and all of it is kept
            self.last = self.known = position
        self.ask(ack=position)

    def close(self):
        self.connection.close()


class Database(Sink):
    """Rows in a table of SQLite, staged in another until they are committed."""

    def __init__(self, path):
        self.path = path

    def connect(self):
        made = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        made.execute("create table if not exists staged (lineage, handle, key, value)")
        made.execute("create table if not exists shown (key, value)")
        return closing(made)

    def begin(self, run):
        self.lineage = run.lineage

    def open(self, context):
        self.rows = []

    def write(self, rows):
        self.rows += [(row.key, row.value) for row in rows]

    def prepare(self, epoch):
        handle, rows = str(uuid.uuid4()), self.rows
        self.rows = []
        with self.connect() as database:
            database.execute("begin immediate")
            staged = [(self.context.lineage, handle, key, value) for key, value in rows]
            database.executemany("insert into staged values (?, ?, ?, ?)", staged)
            database.execute("commit")
        return handle

    def commit(self, epoch, handle):
        with self.connect() as database:
            database.execute("begin immediate")
            database.execute("insert into shown select key, value from staged where handle = ?", (handle,))
            database.execute("delete from staged where handle = ?", (handle,))
            database.execute("commit")

    def forget_staged(self, kept):
        with self.connect() as database:
            database.execute("delete from staged where lineage = ?", (self.lineage,))


class Double(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def rows(path, table="shown"):
    with Database(path).connect() as database:
        return sorted(value for (value,) in database.execute(f"select value from {table}"))


def topology(port: int, out: str, name: str = "staged") -> Topology:
    t = Topology(name)
    t.spout("queue", FromQueue(int(port))).bolt("double", Double, by_key(), parallelism=2).sink("out", Database(out))
    return t
