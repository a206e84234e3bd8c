"""Flows whose input is at the edge: a log that is rotated, a pipe, a socket."""

from __future__ import annotations

import time

from esault import Bolt, Topology, shuffle
from esault.sinks import JsonLines
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


def served(name: str, out: str, port: int) -> Topology:
    """The lines that clients send, faster than they are processed."""
    t = Topology(name)
    lines = t.spout("lines", TcpLines("127.0.0.1", port, listen=True))
    lines.bolt("slow", Slow, shuffle()).sink("out", JsonLines(out))
    return t
