"""Flows whose input is at the edge: a log that is rotated, a pipe, a socket."""

from __future__ import annotations

import os
import signal
import time

from esault import Bolt, Topology, shuffle
from esault.sinks import JsonLines, SparkTable
from esault.sources import Lines, TcpLines, TextFiles


def followed(name: str, path: str, out: str) -> Topology:
    """The lines of logs, as they are written."""
    t = Topology(name)
    lines = t.spout("lines", TextFiles(path, follow=True))
    lines.map(lambda line: line).sink("out", JsonLines(out))
    return t


class Slow(Bolt):
    """A fifth of a millisecond each, slept, so that lines wait on any machine."""

    def process(self, key, value):
        time.sleep(0.0002)
        self.emit(key, value)


def piped(name: str, out: str) -> Topology:
    """The lines of standard input, faster than they are processed."""
    t = Topology(name)
    t.spout("lines", Lines()).bolt("slow", Slow, shuffle()).sink("out", JsonLines(out))
    return t


class Crashing(JsonLines):
    """The command is killed when the sink has ended, the first time."""

    def __init__(self, path, command):
        super().__init__(path)
        self.command = command

    def end(self, ok):
        super().end(ok)
        if not os.path.exists("crashed"):
            open("crashed", "w").close()
            os.kill(self.command, signal.SIGKILL)


def crashing(name: str, path: str, out: str) -> Topology:
    """Lands in a table and a file; the topology is made in the command's process."""
    t = Topology(name)
    words = t.spout("lines", TextFiles(path)).key_by(lambda line: line)
    count = words.reduce("count", lambda total, line: total + 1, initial=0)
    count.sink("out", Crashing(out, os.getpid()))
    count.sink("table", SparkTable("table", {"word": str, "n": int}))
    return t


def served(name: str, out: str, port: int) -> Topology:
    """The lines that clients send, faster than they are processed."""
    t = Topology(name)
    lines = t.spout("lines", TcpLines("127.0.0.1", port, listen=True))
    lines.bolt("slow", Slow, shuffle()).sink("out", JsonLines(out))
    return t
