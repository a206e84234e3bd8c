"""A run for hours, under load that follows days, with a change each minute and a fault each five: what it holds must not grow.

python -m bench.soak --out DIR [--minutes M] [--pace X] [--quick] [--seed N]

Resident memory, descriptors, threads and files are looked at all the time. What lives through the faults (the command, the driver, the
keeper) is compared with itself: the last third of a run with its first third, after the first minutes. What is replaced by faults
(sub-units, ack servers) is compared as a whole. At the end each tuple must have counted once. Soaks add up in DIR/result.json, over days,
machines and commits: each says how many hours it was, and what grew. With `--pace 2.4` days are shorter, changes and faults more frequent
by that factor: what six hours bring comes in two and a half.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psutil

from bench.faults.count import BAD, each_once
from bench.faults.kind import DEATH, END, Kind
from bench.faults.kinds import CHANGE, KINDS
from bench.faults.topology import END as END_FILE
from bench.faults.topology import READ, TOPOLOGY
from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.runs import Runs
from bench.kit.victim import Lost, Victim
from esault.sinks.durable import replace_file

__all__ = ["grown", "main"]

#: tuples a second, on average; seconds of a day; between two checkpoints, changes, faults and looks
RATE, DAY, CHECKPOINT = 300.0, 1200.0, 1.0
CHANGE_EVERY, FAULT_EVERY, LOOK_EVERY = 60.0, 300.0, 10.0
#: seconds that a frozen process stands still, and after which a run that does not recover counts as lost
HOLD, PATIENCE = 10.0, 60.0
#: seconds at the beginning that are compared with nothing: caches fill, all have yet to be changed once
WARM = 300.0
#: who is looked at, by what stands in the title behind the topology's name; all others are "sub-units"
LASTING = ("driver", "keeper")
#: what may be more at the end than at the beginning: a share, and so many besides
ALLOWED = {"rss": (1.10, 8 << 20), "descriptors": (1.05, 4), "threads": (1.05, 2), "files": (1.2, 10)}


class Looks:
    """The memory and files that were held, each time that they were looked at."""

    def __init__(self) -> None:
        #: (who, what) -> (seconds since the start, how much) of each look
        self.all: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    def look(self, victim: Victim, seconds: float) -> None:
        """Look at all processes and files of the run now."""
        held: Counter[tuple[str, str]] = Counter()
        processes = victim.processes()
        assert victim.process is not None
        for process in [psutil.Process(victim.process.pid), *processes]:
            try:
                with process.oneshot():
                    words = " ".join(process.cmdline())
                    who = "command" if process.pid == victim.process.pid else "sub-units"
                    who = next((name for name in LASTING if words.startswith(f"esault faults {name}")), who)
                    held[who, "rss"] += process.memory_info().rss
                    held[who, "descriptors"] += process.num_fds()
                    held[who, "threads"] += process.num_threads()
                    held[who, "processes"] += 1
            except psutil.Error:
                continue  # it has just gone
        subs = held[("sub-units", "processes")]
        for what in ("rss", "descriptors", "threads"):
            if subs:  # by how many there are: changes make them more and fewer
                held["sub-units", what] = held["sub-units", what] // subs
        for what, folder in (("state", victim.folder / "state"), ("run folder", victim.run_dir())):
            held[what, "files"] = sum(1 for path in folder.rglob("*"))
        for name, much in held.items():
            self.all[name].append((seconds, much))


def grown(looks: list[tuple[float, float]], what: str, warm: float) -> tuple[float, float, bool]:
    """The median of the first third behind the warm-up and of the last third, and whether that is growth."""
    behind = [much for seconds, much in looks if seconds > warm] or [much for _, much in looks]
    third = max(1, len(behind) // 3)
    first, last = statistics.median(behind[:third]), statistics.median(behind[-third:])
    share, more = ALLOWED[what]
    return first, last, last > first * share + more


class Soak:
    """One run under load, changes and faults."""

    def __init__(self, folder: Path, seed: int, seconds: float, every: tuple[float, float, float], day: float) -> None:
        self.seconds, self.order = seconds, random.Random(f"soak {seed}")
        self.change_every, self.fault_every, self.look_every = every
        params = {"folder": folder, "rate": RATE, "exactly": True, "day": day}
        self.victim = Victim(folder, True, CHECKPOINT, TOPOLOGY, params, bolts=("left", "right", "count"))
        self.looks = Looks()
        self.counts: Counter[str] = Counter()
        #: seconds until tuples flowed again
        self.recovery: list[float] = []
        # Who ends the whole run would hide what the driver and the keeper hold: those kinds are for bench.faults.
        self.kinds = [kind for kind in KINDS if kind.always and kind.name != CHANGE]
        self.change = next(kind for kind in KINDS if kind.name == CHANGE)

    def run(self) -> dict[str, int]:
        """All of it; what was lost or doubled. Raises Lost."""
        begun = time.monotonic()
        self.victim.start()
        self.victim.until(lambda s: s.get("phase") == "running" and s["checkpoint"] > 0, PATIENCE)
        change, fault, look = self.change_every, self.fault_every, 0.0
        while (now := time.monotonic() - begun) < self.seconds:
            if now >= look:
                self.looks.look(self.victim, now)
                look = now + self.look_every
            elif now >= fault:
                self._befall(self.order.choices(self.kinds, [kind.weight for kind in self.kinds])[0])
                fault += self.fault_every
            elif now >= change:
                self._do(self.change)
                change += self.change_every
            else:
                time.sleep(max(0.0, min(look, fault, change, self.seconds) - now))
        self.counts["seconds"] = round(time.monotonic() - begun)
        replace_file(f"{self.victim.folder / END_FILE}", b"%d" % (int(2 * RATE * (time.monotonic() - begun)) + 1000))
        code = self.victim.wait(600)
        if code != 0:
            raise Lost(f"the run ended with {code}: {self.victim.log()}")
        number = json.loads((self.victim.folder / READ).read_text())["next"]
        self.counts["tuples"] = number
        return each_once(self.victim.folder, number)

    def _do(self, kind: Kind) -> str:
        try:
            follows = kind.happen(self.victim, self.order, HOLD)
        except (Lost, LookupError, ValueError, OSError, psutil.Error) as error:
            if self.victim.ended() is not None:
                raise Lost(f"{kind.name}: {error}: {self.victim.log()}") from None
            return ""  # whom it was meant for is gone just now
        self.counts["changes" if kind is self.change else "faults"] += 1
        self.counts[kind.name] += 1
        return follows

    def _befall(self, kind: Kind) -> None:
        before = self.victim.status()
        at = time.monotonic()
        follows = self._do(kind)
        assert follows != END
        if follows == DEATH:

            def back(now: dict[str, Any]) -> bool:
                well = now.get("phase") == "running" and all(unit["processes"] for unit in now["units"])
                return well and (now["restores"] > before["restores"] or now["checkpoint"] > before["checkpoint"] + 2)

            self.victim.until(back, PATIENCE)
            self.recovery.append(time.monotonic() - at)


def _lines(runs: Runs) -> list[str]:
    totals = runs.totals()
    lines = [
        f"{totals['seconds'] / 3600:.2f} hours in {len(runs.all)} soaks: {totals['tuples']:,} tuples, {totals['changes']:,} changes, "
        f"{totals['faults']:,} faults; checkpoints every {CHECKPOINT:g} s, days of {DAY / 60:g} minutes / pace, from {RATE / 5:g} to "
        f"{RATE * 9 / 5:g} tuples a second",
        *(f"  {name.replace('_', ' ')}: {totals[name]:,}" for name in BAD),
        f"  grew: {totals['grew']:,}",
    ]
    for run in runs.all:
        lines.append(
            f"  {run['commit']}, until {run['until']}: {run['counts']['seconds'] / 60:.0f} minutes, pace {run.get('pace', 1):g}, "
            f"seed {run['first_seed']}"
        )
        for name, (first, last, grew) in run["held"].items():
            unit = 1 << 20 if name.endswith("rss") else 1
            told = f"{first / unit:,.1f} -> {last / unit:,.1f}{' MB' if unit > 1 else ''}"
            lines.append(f"    {name:22} {told}{'  GREW' if grew else ''}")
        lines += [f"    seed {seed}: {wrong[:300]}" for seed, wrong in run["failures"].items()]
    return lines


def main() -> None:
    """The bench."""

    def more(parser: Any) -> None:
        parser.add_argument("--minutes", type=float, default=360.0)
        parser.add_argument(
            "--pace", type=float, default=1.0, help="days, changes and faults by this factor more often"
        )
        parser.add_argument("--seed", type=int)

    arguments = parse(__doc__, more)
    runs = Runs(arguments.out, "soak")
    seed = arguments.seed or runs.next_seed
    runs.check(range(seed, seed + 1))
    pace = arguments.pace
    seconds, every, warm = 60.0 * arguments.minutes, (CHANGE_EVERY / pace, FAULT_EVERY / pace, LOOK_EVERY), WARM
    if arguments.quick:
        seconds, every, warm = 20.0, (4.0, 6.0, 1.0), 5.0
    folder = Path(tempfile.mkdtemp(prefix="esault-soak-"))
    load = facts()["load_at_start"]
    soak = Soak(folder, seed, seconds, every, DAY / pace)
    try:
        wrong = soak.run()
    except BaseException as error:
        print(f"what the run left is in {folder}", file=sys.stderr)
        if isinstance(error, Lost):
            raise SystemExit(f"lost after {soak.counts['faults']} faults: {error}") from None
        raise
    finally:
        soak.victim.end()
    shutil.rmtree(folder)
    held = {
        f"{who}, {what}": grown(looks, what, warm)
        for (who, what), looks in sorted(soak.looks.all.items())
        if what in ALLOWED
    }
    grew = sorted(name for name, (_, _, much) in held.items() if much)
    bad = {name: wrong[name] for name in BAD if name in wrong}
    soak.counts.update({**bad, "grew": len(grew)})
    said = [f"{n} {name}" for name, n in bad.items() if n] + [f"{name} grew" for name in grew]
    about = {
        "held": held,
        "pace": pace,
        "load_at_start": load,
        "recovery_seconds": sorted(round(each, 2) for each in soak.recovery),
    }
    runs.keep(seed, seed, soak.counts, {str(seed): ", ".join(said)} if said else {}, about)
    lines = _lines(runs)
    runs.write(lines)
    print("\n".join(lines))
    if said:
        raise SystemExit(f"something was lost, was doubled or grew: {', '.join(said)}")


if __name__ == "__main__":
    main()
