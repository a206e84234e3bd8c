"""The longest that a tuple is behind at nearly full load: word count at a share of what it bears, open loop, for a minute.

python -m bench.latency.at_load --out DIR [--quick] [--runs N] [--share S] [--seconds S]

Without checkpoints, and with one each second: first what one sub-unit of each unit bears, offered as fast as it is taken, then words
at a share of that. Beside each run a bare loop sleeps a millisecond at a time and notes by how much it is late: so long
the machine lets a process wait in this run. Where that was over 10 ms, what was due then is left out of a second row of figures.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, launch, spread, summary
from bench.kit.result import Bar, write
from bench.kit.steady_latency import BIN, milliseconds, percentiles
from bench.workloads.loads import LENGTH, SEED, Load, make
from esault.messages.settings import Settings

__all__ = ["BareLoop", "behind", "main"]

#: words of a first run at full load, and the seconds of the second one, which says how many are borne
FULL, FULL_SECONDS = 1_000_000, 8.0
#: sentences a second that nothing takes: all are due at once
AT_ONCE = 1e9
#: name -> settings
CASES: dict[str, tuple[str, ...]] = {
    "no checkpoints": (),
    "a checkpoint a second": ("delivery=eo", "checkpoint_every=1"),
}
#: seconds from the first word on that do not count: processes are warm then
WARM = 3.0
#: seconds that the bare loop sleeps, and by which it is late where the machine is disturbed
PAUSE, DISTURBED = 0.001, 0.010
#: the bar: no word is behind by more milliseconds
BAR = 250.0
#: names of figures, and the shares of words that they are of
FIGURES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "worst": 1.0}
#: how many of the longest times are said, of tenths of a second
LONGEST = 10


class BareLoop(threading.Thread):
    """Sleeps for a millisecond again and again, and notes by how much it was late: for so long the machine let it wait."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        #: (when it woke up, seconds too late)
        self.late: list[tuple[float, float]] = []
        self._over = threading.Event()

    def run(self) -> None:
        """The thread."""
        while not self._over.is_set():
            began = time.time()
            time.sleep(PAUSE)
            ended = time.time()
            if ended - began > 2 * PAUSE:
                self.late.append((ended, ended - began - PAUSE))

    def stop(self) -> list[tuple[float, float]]:
        """End it, and return when it was late, and by how many seconds."""
        self._over.set()
        self.join()
        return self.late


def behind(rows: Sequence[tuple[int, int, int]], late: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return figures of rows: (number of the bin that they were due in, of their latency, how many).

    `late`: when the bare loop woke up, seconds since the epoch, and how late. Bins from its sleep to the one after it woke up are
    "disturbed".
    """
    disturbed: set[int] = set()
    for woke, seconds in late:
        if seconds > DISTURBED:
            disturbed.update(range(int((woke - seconds) / BIN) - 1, int(woke / BIN) + 2))
    worst: dict[int, int] = {}
    every: Counter[int] = Counter()
    quiet: Counter[int] = Counter()
    for at, latency, count in rows:
        worst[at] = max(latency, worst.get(at, latency))
        every[latency] += count
        if at not in disturbed:
            quiet[latency] += count
    longest = sorted(worst.items(), key=lambda item: -item[1])[:LONGEST]
    return {
        **dict(zip(FIGURES, percentiles(every, FIGURES.values()))),
        "words": every.total(),
        "late": sum(count for latency, count in every.items() if milliseconds(latency) > BAR),
        "undisturbed": {
            **dict(zip(FIGURES, percentiles(quiet, FIGURES.values()))),
            "words": quiet.total(),
            "seconds": BIN * len(worst.keys() - disturbed),
        },
        "longest": [{"due": at * BIN, "ms": milliseconds(ms), "disturbed": at in disturbed} for at, ms in longest],
        "machine": 1000 * max((seconds for _, seconds in late), default=0.0),
        "disturbed_seconds": BIN * len(worst.keys() & disturbed),
    }


def _launch(load: Load, rate: float, settings: Sequence[str]) -> Run:
    chosen = [part for text in settings for part in ("--set", text)]
    run = launch("bench.latency.timed_run", load.path, load.passes, "--rate", rate, *chosen)
    if run["rows"] != load.results:
        raise RuntimeError(f"{run['rows']:,} words were counted in place of {load.results:,}")
    return run


def _bears(folder: str, scale: float, settings: Sequence[str]) -> float:
    """Words a second that are counted where all are due at once."""
    words, rate = FULL * scale, 0.0
    for _ in range(2):
        load = make("sentences", int(words / LENGTH), folder)
        run = _launch(load, AT_ONCE, settings)
        rate = load.results / max(1e-3, run["last"] - run["first"])
        words = rate * FULL_SECONDS * scale
    return rate


def _at(load: Load, rate: float, settings: Sequence[str]) -> Run:
    loop = BareLoop()
    loop.start()
    try:
        run = _launch(load, rate / LENGTH, settings)
    finally:
        late = loop.stop()
    since = run["first"] + WARM
    rows = [(at, latency, count) for at, latency, count in run.pop("latencies") if at * BIN >= since]
    if not rows:
        raise RuntimeError(f"the run was over within {WARM:g} s: say more --seconds")
    return {**run, "rate": rate, **behind(rows, [(woke, seconds) for woke, seconds in late if woke >= since])}


def _say(run: Run) -> str:
    figures = ", ".join(f"{name} {run[name]:.1f} ms" for name in FIGURES)
    return (
        f"{figures}; the machine itself up to {run['machine']:.1f} ms; {run['late']:,} words late by over {BAR:.0f} ms"
    )


def _lines(name: str, runs: list[Run]) -> list[str]:
    def of(*path: str) -> str:
        values = [run[path[0]] if len(path) == 1 else run[path[0]][path[1]] for run in runs]
        return spread(summary([value or 0.0 for value in values]), ",.1f")

    late, seconds = sum(run["late"] for run in runs), sum(run["disturbed_seconds"] for run in runs)
    longest = [f"{each['ms']:.0f}{' (machine)' if each['disturbed'] else ''}" for each in runs[0]["longest"]]
    rate = statistics.median(run["rate"] for run in runs)
    return [
        f"{name}, {rate:,.0f} words/s, ms: " + "   ".join(f"{figure} {of(figure)}" for figure in FIGURES),
        f"  but for {seconds:.1f} s in which the bare loop was late by over {1000 * DISTURBED:.0f} ms: "
        + "   ".join(f"{figure} {of('undisturbed', figure)}" for figure in FIGURES),
        f"  the bare loop was late by up to {of('machine')} ms; {late:,} words were late by over {BAR:.0f} ms",
        f"  the longest: {', '.join(longest)} ms; each in a tenth of a second of its own",
    ]


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=float, default=0.9, help="of the words a second that are borne")
    parser.add_argument("--seconds", type=float, default=60.0, help="that count, of each run")


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _more)
    runs = arguments.runs or (1 if arguments.quick else 3)
    scale = arguments.scale * (0.1 if arguments.quick else 1.0)
    seconds = WARM + max(1.0, arguments.seconds * scale)
    machine = facts()
    bears: dict[str, float] = {}
    loads: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        calls: dict[str, Callable[[], Run]] = {}
        for name, settings in CASES.items():
            bears[name] = statistics.median(_bears(folder, scale, settings) for _ in range(runs))
            rate = arguments.share * bears[name]
            print(f"{name}: {bears[name]:,.0f} words/s are borne; {rate:,.0f} for {seconds:.0f} s", flush=True)
            load = make("sentences", int(rate * seconds / LENGTH), folder)
            loads[name] = load.facts()
            calls[name] = functools.partial(_at, load, rate, settings)
        measured = in_turns(runs, calls, _say)
    result = {
        "bench": "latency.at_load",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings()),
        "semantics": f"word count, one sub-unit a unit, open loop at {arguments.share:g} of what it bears; from when a word's sentence was "
        f"due to when the sink had its update, within 5 %, the first {WARM:g} s left out; ms",
        "bears": bears,
        "share": arguments.share,
        "loads": loads,
        "cases": measured,
    }
    lines = [f"word count at {arguments.share:.0%} of what one sub-unit a unit bears, for {seconds - WARM:.0f} s"]
    lines += [line for name, each in measured.items() for line in _lines(name, each)]
    panels = {
        figure: [Bar.of(f"esault, {name}", summary([run[figure] for run in each])) for name, each in measured.items()]
        for figure in FIGURES
    }
    write(arguments.out, result, lines, panels, "ms")


if __name__ == "__main__":
    main()
