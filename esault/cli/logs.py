"""`esault logs`."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from esault.cli.completion import complete_kept_runs
from esault.cli.running_option import run_argument
from esault.errors import UsageError
from esault.runtime.process.log_output import PRINTED, ROTATED

if TYPE_CHECKING:
    from esault.runtime.session.detached import DetachedRun

__all__ = ["command"]

#: seconds between two looks for more
LOOK = 0.1


@click.command("logs")
@functools.partial(run_argument, complete=complete_kept_runs)
@click.option("--follow", is_flag=True, help="Go on until the run ends, or Ctrl-C.")
@click.option("--unit", metavar="UNIT", help="Of this unit alone.")
@click.option("--lines", "most", type=click.IntRange(0), help="The newest N alone.")
@click.option("--json", "as_json", is_flag=True, help="As it is kept: a JSON object a line.")
def command(run: str | None, follow: bool, unit: str | None, most: int | None, as_json: bool) -> None:
    """Show what a run in the background has logged and printed: the newest, or RUN.

    RUN is a topology's name, whose newest run is meant, or the beginning of a run's id. Runs are begun with `esault run --detach`.
    """
    chosen = _choose(run)
    try:
        file = (chosen.folder / "log").open(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{chosen.folder} has no log: the run did not begin") from None
    lines = _matching(itertools.chain(_rotated(chosen.folder), _whole(file)), unit)
    for line in lines if most is None else deque(lines, most):
        print(line if as_json else _shown(json.loads(line)))
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            for line in _matching(_coming(chosen, file), unit):
                print(line if as_json else _shown(json.loads(line)), flush=True)
    else:
        file.close()


def _choose(name: str | None) -> DetachedRun:
    from esault.runtime.session.detached import detached_runs

    found = detached_runs()
    if not found:
        raise UsageError("no run of this user was begun with `esault run --detach`; others log where they were started")
    about = {each: each.about for each in found}
    chosen = [
        each
        for each, said in about.items()
        if name is None or said.get("topology") == name or str(said.get("run", "")).startswith(name)
    ]
    if not chosen:
        known = ", ".join(sorted({str(said["topology"]) for said in about.values() if said.get("topology")}))
        raise UsageError(f"no run in the background is named {name!r}; there are: {known or 'none that has begun'}")
    return chosen[-1]


def _rotated(folder: Path) -> Iterator[str]:
    """Yield the lines of the files that have been put away, the oldest first."""
    for i in range(ROTATED, 0, -1):
        with contextlib.suppress(FileNotFoundError), (folder / f"log.{i}").open(encoding="utf-8") as file:
            yield from _whole(file)


def _whole(file: TextIO) -> Iterator[str]:
    """Yield the lines that have ended; the file then stands before one that has not."""
    while True:
        at = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(at)
            return
        yield line.rstrip("\n")


def _coming(run: DetachedRun, file: TextIO) -> Iterator[str]:
    """Yield lines as they come, until the run is over. A file that is put away meanwhile is read to its end."""
    path = run.folder / "log"
    try:
        while True:
            alive = run.alive
            yield from _whole(file)
            with contextlib.suppress(FileNotFoundError):
                if not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    yield from _whole(file)
                    file.close()
                    file = path.open(encoding="utf-8")
                    continue
            if not alive:
                return
            time.sleep(LOOK)
    finally:
        file.close()


def _matching(lines: Iterator[str], unit: str | None) -> Iterator[str]:
    for line in lines:
        if unit is None or json.loads(line).get("unit") == unit:
            yield line


def _shown(said: dict[str, Any]) -> str:
    """Return a line for people."""
    unit, number = said.get("unit"), said.get("sub_unit")
    mark = "" if not unit else f"[{unit}/{number}] " if number is not None else f"[{unit}] "
    level = "" if said["logger"] == PRINTED else f"{said['level'].upper()} {said['logger']}: "
    after = f"\n{said['exception']}" if "exception" in said else ""
    return f"{said['time']} {mark}{level}{said['message']}{after}"
