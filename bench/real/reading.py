"""Input as the plain loop and Bytewax read it: lines of files, and what topologies/flight_delays.py defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from esault.topology.locate import locate

__all__ = ["TOPOLOGIES", "batch_of", "flight_delays", "lines", "listed", "module"]

#: rows that a source or the loop hands on at a time: as many as Bytewax's own FileSource, fewer where each takes long or is large
BATCHES = {"waits": 4, "large": 50}
BATCH = 1000
TOPOLOGIES = Path(__file__).parents[2] / "topologies"


def batch_of(name: str) -> int:
    """The rows of a batch of this work."""
    return BATCHES.get(name, BATCH)


def listed(data: str | Path) -> list[str]:
    """The files of a workload, in their order."""
    return Path(data, "files.txt").read_text().splitlines()


def lines(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(file, line without its end), as TextFiles with errors="replace" gives them."""
    for file in files:
        with open(file, encoding="utf-8", errors="replace", newline="\n") as text:
            for line in text:
                yield file, line.rstrip("\n")


def module(name: str) -> Any:
    """Return what a file of topologies/ defines."""
    return locate(f"{TOPOLOGIES / name}.py").load_module()


def flight_delays() -> Any:
    """The functions of topologies/flight_delays.py, with what its totals begin with."""
    its = module("flight_delays")
    its.NO_LINE, its.NO_DAY = (0, 0, -1440), (0, 0, 0)
    return its
