"""Faults by the thousand, seeded, done to a run under load; then its counts are compared with what they must be.

python -m bench.faults --out DIR [--quick] [--runs FAULTS] [--seed N] [--total DIR]

`--total DIR` adds the run to those in DIR/result.json, so that faults add up over days, machines and commits; without `--seed` it goes on
behind the last seed there.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench.faults.count import BAD, each_once, nothing_missing
from bench.faults.kinds import DEATH, EITHER, END, KINDS, Kind
from bench.faults.topology import READ, TOPOLOGY
from bench.faults.topology import END as END_FILE
from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.result import Bar, write
from bench.kit.runs import Runs
from bench.kit.victim import Lost, Victim
from bench.workloads.loads import SEED

__all__ = ["main"]

#: faults with checkpoints, and without
FULL, QUICK = (1000, 200), (24, 10)
RATE, CHECKPOINT = 2000.0, 0.25
#: seconds that a frozen process stands still
HOLD, QUICK_HOLD = 10.0, 1.0
#: seconds after which a run that does not recover counts as lost
PATIENCE = 60.0


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Trial:
    """One run under faults, with checkpoints (`exactly`) or without."""

    def __init__(self, exactly: bool, faults: int, hold: float, folder: Path, seed: int) -> None:
        self.exactly, self.faults, self.hold = exactly, faults, hold
        params = {"folder": folder, "rate": RATE, "exactly": exactly}
        self.victim = Victim(folder, exactly, CHECKPOINT, TOPOLOGY, params)
        self.order = random.Random(f"{seed}-{exactly}")
        self.kinds = [kind for kind in KINDS if exactly or kind.always]
        #: by kind: what followed, and seconds until tuples flowed again where they had stopped
        self.happened: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def run(self) -> dict[str, Any]:
        """All faults, then the end. Raises Lost."""
        begun = time.time()
        self.victim.start()
        last, done, told = 0, 0, 0.0
        while done < self.faults:
            status = self.victim.until(partial(self._well, last), PATIENCE)
            last = status["checkpoint"]
            time.sleep(self.order.uniform(0, 1.5 * CHECKPOINT))
            kind = self.order.choices(self.kinds, [kind.weight for kind in self.kinds])[0]
            done += self._do(kind, status)
            if time.monotonic() - told > 20:
                told = time.monotonic()
                print(f"  {done:,} of {self.faults:,} faults, {time.time() - begun:.0f} s", flush=True)
        self.victim.until(partial(self._well, last), PATIENCE)
        # No more than that can have been read: what is missing up to there is read as fast as it goes.
        (self.victim.folder / END_FILE).write_text(str(int(RATE * (time.time() - begun)) + 5000))
        code = self.victim.wait(600)
        if code != 0:
            raise Lost(f"the run ended with {code}: {self.victim.log()}")
        number = json.loads((self.victim.folder / READ).read_text())["next"]
        check = each_once if self.exactly else nothing_missing
        return {
            "faults": done,
            "commands": self.victim.commands,
            "seconds": time.time() - begun,
            "numbers": number,
            **check(self.victim.folder, number),
            "by_kind": self._by_kind(),
            "restores": [r["seconds"] for r in self.victim.restores() if r["seconds"] is not None],
        }

    def _well(self, last: int, status: dict[str, Any]) -> bool:
        if status.get("phase") != "running" or any(not unit["processes"] for unit in status["units"]):
            return False
        return status["checkpoint"] > last if self.exactly else True

    def _do(self, kind: Kind, status: dict[str, Any]) -> int:
        """Have it happen and wait until all is well again; how many faults it was."""
        at = time.monotonic()
        try:
            follows = kind.happen(self.victim, self.order, self.hold)
        except (Lost, LookupError, ValueError, OSError, psutil.Error) as error:
            # whom it was meant for is gone just now
            if self.victim.ended() is None:
                return 0
            raise Lost(f"{kind.name}: {error}: {self.victim.log()}") from None
        if follows == EITHER:
            follows = self._seen(status)
        if follows == END:
            code = self.victim.wait(PATIENCE)
            while self.victim.processes():
                time.sleep(0.01)
            self.victim.start()
            self.victim.until(lambda s: s.get("phase") == "running", PATIENCE)
            self.happened[kind.name].append({"followed": "resumed", "seconds": time.monotonic() - at, "exit": code})
        elif follows == DEATH:
            what = "restores" if self.exactly else "deaths"
            went_on = self._until_back(what, status[what])
            if went_on:  # who was killed had just left in order
                self.happened[kind.name].append({"followed": "nothing"})
            else:
                self.happened[kind.name].append({"followed": "restored", "seconds": time.monotonic() - at})
        else:
            self.happened[kind.name].append({"followed": "nothing"})
        return 1

    def _until_back(self, what: str, before: int) -> bool:
        """Wait until tuples flow again; True if they never stopped, by three checkpoints that came since, or three seconds."""
        at, since = time.monotonic(), self.victim.until(lambda now: "checkpoint" in now, PATIENCE)["checkpoint"]

        def back(now: dict[str, Any]) -> bool:
            if now.get("phase") != "running":
                return False
            later = now["checkpoint"] > since + 2 if self.exactly else time.monotonic() - at > 3
            return bool(now[what] > before or later)

        return bool(self.victim.until(back, PATIENCE)[what] == before)

    def _seen(self, status: dict[str, Any]) -> str:
        """What a fault that may have ended the run has done."""
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            if self.victim.ended() is not None:
                return END
            try:
                if self.victim.status()["phase"] in ("stopping", "ended"):
                    return END
            except Lost:
                return END  # its door is closed: it is on its way out
            time.sleep(0.05)
        return "nothing"

    def _by_kind(self) -> dict[str, Any]:
        found = {}
        for kind in self.kinds:
            happened = self.happened[kind.name]
            seconds = [each["seconds"] for each in happened if "seconds" in each]
            found[kind.name] = {
                "injected": len(happened),
                "followed": dict(Counter(each["followed"] for each in happened)),
                "recovery_seconds": {
                    "p50": _percentile(seconds, 0.5),
                    "p99": _percentile(seconds, 0.99),
                    "max": max(seconds, default=0.0),
                },
                "seconds": seconds,
            }
        return found


def _run(exactly: bool, faults: int, hold: float, seed: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="esault-faults-"))
    trial = Trial(exactly, faults, hold, folder, seed)
    try:
        result = trial.run()
    except BaseException as error:
        print(f"what the run left is in {folder}", file=sys.stderr)
        if isinstance(error, Lost):
            raise SystemExit(f"lost after {sum(map(len, trial.happened.values()))} faults: {error}") from None
        raise
    finally:
        trial.victim.end()
    shutil.rmtree(folder)
    return result


def _lines(name: str, result: dict[str, Any], counts: tuple[str, ...]) -> list[str]:
    lines = [
        f"{name}: {result['faults']:,} faults in {result['seconds'] / 60:.0f} minutes, {result['numbers']:,} tuples read, "
        f"{result['commands']:,} commands"
    ]
    lines += [f"  {count.replace('_', ' ')}: {result[count]:,}" for count in counts]
    every = [s for kind in result["by_kind"].values() for s in kind["seconds"]]
    lines.append(
        f"  recovery, from the fault until tuples flow: p50 {_percentile(every, 0.5):.2f} s, p99 {_percentile(every, 0.99):.2f} s, "
        f"max {max(every, default=0.0):.2f} s"
    )
    for kind, its in result["by_kind"].items():
        if its["injected"]:
            followed = ", ".join(f"{what} {n}" for what, n in its["followed"].items() if what != "nothing")
            times = its["recovery_seconds"]
            took = f"  p50 {times['p50']:.2f} s  p99 {times['p99']:.2f} s" if its["seconds"] else ""
            lines.append(f"  {its['injected']:5,}  {kind:34}  {followed or 'went on':14}{took}")
    return lines


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, help="of what befalls the runs")
    parser.add_argument("--total", metavar="DIR", help="add this run to those in DIR/result.json")


def _add(total: Runs, seed: int, exactly: dict[str, Any], always: dict[str, Any], load: float) -> None:
    """Add what happened to all that has happened so far, and write it."""
    counts: Counter[str] = Counter()
    recovery: Counter[str] = Counter()
    for result, said in ((exactly, "with checkpoints"), (always, "at least once")):
        counts[f"faults {said}"] += result["faults"]
        counts["commands"] += result["commands"]
        counts["tuples"] += result["numbers"]
        for kind, its in result["by_kind"].items():
            counts[f"fault: {kind}"] += its["injected"]
            recovery.update(f"{seconds:.2f}" for seconds in its["seconds"])
    wrong = {name: exactly[name] for name in BAD} | {"at least once: tuples_lost": always["tuples_lost"]}
    counts.update(wrong)
    failures = {str(seed): ", ".join(f"{n} {name}" for name, n in wrong.items() if n)} if any(wrong.values()) else {}
    about = {"recovery_seconds": dict(sorted(recovery.items())), "load_at_start": load}
    total.keep(seed, seed, counts, failures, about)
    all_counts, seconds = total.totals(), []
    for run in total.all:
        seconds += [float(each) for each, n in run["recovery_seconds"].items() for _ in range(n)]
    faults = all_counts["faults with checkpoints"] + all_counts["faults at least once"]
    kinds = sorted((n, name.removeprefix("fault: ")) for name, n in all_counts.items() if name.startswith("fault: "))
    total.write(
        [
            f"{faults:,} faults in {len(total.all)} runs: {all_counts['faults with checkpoints']:,} with checkpoints every "
            f"{CHECKPOINT} s, {all_counts['faults at least once']:,} at least once; {all_counts['tuples']:,} tuples, "
            f"{all_counts['commands']:,} commands",
            *(f"  {name.replace('_', ' ')}: {all_counts[name]:,}" for name in wrong),
            f"  recovery, from the fault until tuples flow: p50 {_percentile(seconds, 0.5):.2f} s, p99 "
            f"{_percentile(seconds, 0.99):.2f} s, max {max(seconds, default=0.0):.2f} s",
            *(f"  {n:6,}  {name}" for n, name in reversed(kinds)),
            *total.lines(),
        ]
    )


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _more)
    total = None if arguments.total is None else Runs(arguments.total, "faults")
    seed = arguments.seed or (SEED if total is None else total.next_seed)
    if total is not None:
        total.check(range(seed, seed + 1))
    exactly, always = QUICK if arguments.quick else FULL
    exactly = arguments.runs or exactly
    hold = QUICK_HOLD if arguments.quick else HOLD
    machine = facts()
    print(f"with checkpoints every {CHECKPOINT} s: {exactly:,} faults", flush=True)
    with_checkpoints = _run(True, exactly, hold, seed)
    print(f"without, at least once: {always:,} faults", flush=True)
    without = _run(False, always, hold, seed)
    if total is not None:
        _add(total, seed, with_checkpoints, without, machine["load_at_start"])
    lines = [
        *_lines(
            f"checkpoints every {CHECKPOINT} s",
            with_checkpoints,
            BAD,
        ),
        *_lines("at least once", without, ("tuples_lost", "rows_repeated")),
    ]
    panels = {
        title: [
            Bar(kind, its["recovery_seconds"]["p50"], min(its["seconds"]), its["recovery_seconds"]["p99"])
            for kind, its in result["by_kind"].items()
            if its["seconds"]
        ]
        for title, result in (("checkpoints: back in", with_checkpoints), ("at least once: replaced in", without))
    }
    result = {
        "bench": "faults",
        "machine": machine,
        "seed": seed,
        "rate": RATE,
        "checkpoint_every": CHECKPOINT,
        "frozen_seconds": hold,
        "exactly": with_checkpoints,
        "at_least_once": without,
    }
    write(
        arguments.out,
        result,
        lines,
        {title: bars for title, bars in panels.items() if bars},
        "seconds (p50; line: least to p99)",
    )
    if any(with_checkpoints[count] for count in BAD) or without["tuples_lost"]:
        raise SystemExit("something was lost or doubled: see above")


if __name__ == "__main__":
    main()
