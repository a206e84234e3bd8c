"""Flows whose input is at the edge: a log that is rotated, a pipe, a socket."""

from __future__ import annotations

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import TextFiles


def followed(name: str, path: str, out: str) -> Topology:
    """The lines of logs, as they are written."""
    t = Topology(name)
    lines = t.spout("lines", TextFiles(path, follow=True))
    lines.map(lambda line: line).sink("out", JsonLines(out))
    return t
