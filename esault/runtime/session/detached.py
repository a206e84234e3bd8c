"""Runs that go on without a terminal: their folders, with who they are and what they log.

A folder stands in $XDG_STATE_HOME/esault/runs (~/.local/state), also when the run is over; the newest are kept. `run.json` says who it
is and how it ended. `log` has all that was logged and printed, JSON a line, rotated; `output` the rest, such as of libraries in C.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from esault.errors import UsageError
from esault.runtime.process.owner import Owner
from esault.state_home import make_state_home, state_home

__all__ = ["KEEP", "LOG", "OUTPUT", "DetachedRun", "any_begins", "begin", "detached_runs", "folder_of_this_run"]

#: name of the variable by which the process of a detached run knows its folder
VARIABLE = "_ESAULT_DETACHED"
LOG, ABOUT, OUTPUT = "log", "run.json", "output"
#: the folder of all runs in that of the user's state
RUNS = "runs"
#: runs that are over whose folders are kept
KEEP = 50
#: seconds between two looks at a run that starts
LOOK = 0.05


class DetachedRun:
    """One run by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def about(self) -> dict[str, Any]:
        """The contents of `run.json`: topology, run, pid, started, command, cwd, and once it is over ended, code, at."""
        try:
            found: dict[str, Any] = json.loads((self.folder / ABOUT).read_text())
        except (OSError, ValueError):
            return {}
        return found

    def say(self, **more: Any) -> None:
        """Add to `run.json`, at once for those who read it."""
        draft = self.folder / f"{ABOUT}.new"
        draft.write_text(json.dumps({**self.about, **more}))
        draft.replace(self.folder / ABOUT)

    @property
    def alive(self) -> bool:
        """Return whether its process is there."""
        about = self.about
        return "pid" in about and Owner(int(about["pid"]), float(about["born"])).alive()

    @property
    def state(self) -> str:
        """Return "starting", "running", how it ended, or "killed"."""
        about = self.about
        if "ended" in about:
            return str(about["ended"])
        if not self.alive:
            return "killed" if "pid" in about else "starting"
        return "running" if about.get("run") else "starting"


def detached_runs() -> list[DetachedRun]:
    """Return all of this user, in the order of their start."""
    home = state_home()
    parent = None if home is None else home / RUNS
    return [DetachedRun(path) for path in sorted(parent.iterdir())] if parent is not None and parent.is_dir() else []


def any_begins() -> bool:
    """Return whether one is under way of which no tuple flows yet: its process is there, or still that of the command which begins it."""
    return any(
        each.state == "starting" and (each.alive or Path("/proc", each.folder.name.rpartition("-")[2]).exists())
        for each in detached_runs()
    )


def folder_of_this_run() -> DetachedRun | None:
    """Return the folder, where this process is that of a detached run; what it starts is not."""
    found = os.environ.pop(VARIABLE, None)
    if not found:
        return None
    made, here = DetachedRun(Path(found)), Owner.current()
    made.say(pid=here.pid, born=here.start_time)
    return made


def begin(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> DetachedRun:
    """Start `esault` with these arguments in the background, and wait until tuples flow or it is over. Raises UsageError."""
    _forget_old()
    parent = make_state_home(RUNS)
    try:
        # UTC: names say the order in which runs began, also where clocks are changed, or shells have other time zones
        made = DetachedRun(parent / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}")
        made.folder.mkdir(mode=0o700)
        made.say(started=time.strftime("%Y-%m-%d %H:%M:%S"), command=list(arguments), cwd=os.getcwd())
        with (made.folder / OUTPUT).open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "esault", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**(os.environ if environment is None else environment), VARIABLE: str(made.folder)},
            )
    except OSError as error:
        raise UsageError(f"{parent}: {error.strerror or error}") from None
    _wait(lambda: process.poll() is not None or made.about.get("run"))
    return made


def _wait(over: Callable[[], Any]) -> None:
    while not over():
        time.sleep(LOOK)


def _forget_old() -> None:
    over = [each for each in detached_runs() if not each.alive]
    for each in over[:-KEEP] if len(over) > KEEP else ():
        with contextlib.suppress(OSError):
            shutil.rmtree(each.folder)
