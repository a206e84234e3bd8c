"""One run of an engine as a command of its own; several runs of several engines in turns, as median and spread."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, overload

import psutil

from bench.workloads.loads import Load

__all__ = [
    "LaunchError",
    "Memory",
    "Run",
    "command",
    "in_turns",
    "launch",
    "missing",
    "pss",
    "ratio",
    "spread",
    "summary",
]

#: seconds between two samples; a process stands still for milliseconds while its pages are counted
EVERY = 0.2


ROOT = Path(__file__).parents[2]
#: of a summary
PARTS = ("median", "least", "most")
#: seconds after which a run hangs
LONGEST = 300

#: a run's result: tuples_per_second, start_up_seconds, pss_mib if it was weighed, and what the command printed: rows, first, last ...
Run = dict[str, Any]


class LaunchError(RuntimeError):
    """A command that failed, with what it said."""


_EXTRAS = {"bytewax": "bench", "duckdb": "bench", "numpy": "bench", "pyarrow": "parquet", "pyspark": "spark"}


def missing(package: str) -> str | None:
    """Return what to say where a package is not installed; None where it is."""
    if importlib.util.find_spec(package) is not None:
        return None
    return f"skipped: {package} is not installed (pip install 'esault[{_EXTRAS[package]}]')"


def command(load: Load, module: str, *arguments: object, weigh: bool = False, python: str = sys.executable) -> Run:
    """Run `python -m module` in the checkout and read the JSON of its last line.

    Rates are from the first result to the last, or those of the part that the run calls "steady" (bench/kit/steady.py); start-up is
    from the command to the first result. With `weigh` the run says how much memory the command and all its descendants
    took, and is no run to take times from. Raises RuntimeError when it fails, or puts out other than it must: a run
    that prints "final", what each key has in the end, is judged by that, any other by the number of its rows.
    """
    run = launch(module, *arguments, weigh=weigh, python=python)
    final = run.pop("final", None)
    if final is not None:
        wrong = _wrong(load.final(), final)
        if wrong:
            raise RuntimeError(f"{module} {arguments} {wrong}")
    elif run["rows"] != load.results:
        raise RuntimeError(f"{module} {arguments} put out {run['rows']:,} rows in place of {load.results:,}")
    steady = run.get("steady") or {"tuples": load.tuples, "seconds": max(1e-9, run["last"] - run["first"])}
    run["tuples_per_second"] = steady["tuples"] / steady["seconds"]
    return run


def _wrong(right: dict[str, int], final: dict[str, int]) -> str | None:
    """Return what is wrong with the final counts; None where nothing is."""
    keys = [key for key in {**right, **final} if right.get(key) != final.get(key)]
    if not keys:
        return None
    key = keys[0]
    return f"ended with {final.get(key)} for {key} in place of {right.get(key)}, and {len(keys):,} keys of {len(right):,} are wrong"


def launch(
    module: str, *arguments: object, weigh: bool = False, python: str = sys.executable, longest: float = LONGEST
) -> Run:
    """As `command`, whatever it puts out: only start-up and memory are added. Ctrl-C ends it and all that it started."""
    begun = time.time()
    process = subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        # Compiled modules are kept, as they are on any machine that is no build farm: else each start compiles them anew.
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal is for the bench, which ends the run
    )
    memory = Memory(process.pid) if weigh else None
    try:
        out, error = process.communicate(timeout=longest)
    except subprocess.TimeoutExpired:
        _end(process)
        raise RuntimeError(f"{module} {arguments} did not end within {longest:g} s") from None
    except BaseException:
        _end(process)
        raise
    finally:
        most = memory.stop() if memory is not None else None
    if process.returncode or not out.strip():
        raise LaunchError(f"{module} {arguments} failed:\n{error.strip()[-4000:]}")
    run: Run = json.loads(out.splitlines()[-1])
    run["start_up_seconds"] = run["first"] - begun
    if most is not None:
        run["pss_mib"] = most / 2**20
    return run


def _end(process: subprocess.Popen[str]) -> None:
    """At once: an engine's second signal says so. What is left of its tree is killed, each by its id."""
    left: set[psutil.Process] = set()
    with contextlib.suppress(psutil.Error):
        left.update(psutil.Process(process.pid).children(recursive=True))
    for _ in range(2):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
            break
    if process.poll() is None:
        process.kill()
    process.communicate()
    for each in psutil.wait_procs(left, timeout=2.0)[1]:
        with contextlib.suppress(psutil.Error):
            each.kill()


@overload
def in_turns(runs: int, calls: Mapping[str, Callable[[], Run]], say: Callable[[Run], str]) -> dict[str, list[Run]]: ...


@overload
def in_turns(
    runs: int, calls: Mapping[str, Callable[[], Run] | str], say: Callable[[Run], str]
) -> dict[str, list[Run] | str]: ...


def in_turns(runs: int, calls: Mapping[str, Callable[[], Run] | str], say: Callable[[Run], str]) -> Any:
    """Each call so many times, one after the other, so that what disturbs the machine disturbs all of them.

    A string in place of a call is why there is none. `say` is what the terminal shows of a run.
    """
    measured: dict[str, list[Run]] = {}
    for turn in range(runs):
        for name, call in calls.items():
            if isinstance(call, str):
                if not turn:
                    print(f"  {name}: {call}", flush=True)
                continue
            run = call()
            measured.setdefault(name, []).append(run)
            print(f"  run {turn + 1} of {runs}, {name}: {say(run)}", flush=True)
    return {name: call if isinstance(call, str) else measured[name] for name, call in calls.items()}


def summary(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def spread(figure: dict[str, float], form: str = ",.2f", unit: float = 1.0, of: str = "") -> str:
    """`median of (least to most)` of a summary, as text, divided by `unit`; `of` such as " M/s"."""
    median, least, most = (format(figure[part] / unit, form) for part in PARTS)
    return f"{median}{of} ({least} to {most})"


def ratio(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Ratio of the medians; least and most of the ratios turn by turn, each of runs beside each other.

    Where one had fewer turns, no run is beside another: least and most are then of all pairs.
    """
    pairs = zip(ours, theirs) if len(ours) == len(theirs) else itertools.product(ours, theirs)
    turns = [a / b for a, b in pairs]
    return {"median": statistics.median(ours) / statistics.median(theirs), "least": min(turns), "most": max(turns)}


def pss(pid: int) -> int:
    """Bytes of a process and all its descendants, what they share counted once; 0 when it is gone."""
    total = 0
    try:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    for process in tree:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


class Memory(threading.Thread):
    """Samples until it is stopped; `most` is the largest sample, bytes."""

    def __init__(self, pid: int) -> None:
        """Starts at once."""
        super().__init__(daemon=True)
        self.most = 0
        self._pid = pid
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """The thread."""
        while not self._over.wait(EVERY):
            self.most = max(self.most, pss(self._pid))

    def stop(self) -> int:
        """The largest sample, bytes."""
        self._over.set()
        self.join()
        return self.most
