"""Random joins by time, patterns, and windows with panes, over streams that come out of order, and what befalls them, each compared with a plain loop.

`python -m tests.programs.timed --count 20000 --jobs 2` runs many, `--only SEED` one of them.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from esault import Topology
from esault.messages.settings import Settings
from esault.patterns import Pattern
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SlidingWindow, TumblingWindow
from tests.programs import paned
from tests.programs.generate import Failed, Run, differences

#: seconds that a row may be behind the newest one of its stream
LATENESS = 5
KINDS = ("inner", "left", "right", "outer")
SHAPES = (
    "within",
    "within",
    "within",
    "as_of",
    "as_of",
    "tables",
    "window",
    "pattern",
    "pattern",
    "panes",
    "panes",
    "ordered",
    "clock",
)
#: of those what comes depends on how the watermark or the clock goes: `paned` checks it
PANED = ("panes", "ordered", "clock")
WORDS = ("next", "followed_by", "followed_by_any")


def at(value):
    return value[0]


@dataclass(frozen=True)
class Unit:
    """What `Run` asks of a unit that may be changed."""

    idle: None = None
    most: None = None
    changes: bool = True
    grouping: str = "by_key"


@dataclass
class Program:
    """All that a seed says."""

    seed: int
    shape: str
    how: dict[str, Any]
    spouts: dict[str, list[tuple[Any, Any]]]
    settings: Settings
    parallelism: int
    kills: int
    restless: float
    resumes: int
    units: dict[str, Unit] = field(default_factory=lambda: {"out": Unit()})
    #: none of its bolts is chained
    chains: bool = False

    def __str__(self) -> str:
        rows = ", ".join(f"{len(rows)} rows" for rows in self.spouts.values())
        return f"seed {self.seed}, {self.settings.delivery}, kills {self.kills}, resumes {self.resumes}: {self.shape} {self.how}, {rows}"


def _rows(r, side, keys, most, fraction):
    found, newest = [], r.randrange(20)
    for n in range(r.randint(0, most)):
        newest += r.choice([0, 0, 1, 2, 8])
        moment = max(0, newest - r.choice([0, 0, r.randint(0, LATENESS)])) * fraction
        found.append((r.choice(keys), (moment, f"{side}{n}")))
    return found


def draw(seed):
    """The program of a seed."""
    r = random.Random(seed)
    shape = r.choice(SHAPES)
    keys = r.sample(["a", "b", "ü", 2, (2, "a"), b"a"], r.choice([1, 2, 4]))
    fraction = r.choice([1, 1, 0.1])
    if shape == "within":
        before = r.choice([0, 1, 3, 10])
        keep = r.choice(["all", "all", "first", "last"])
        how = {
            "within": (before * fraction, r.choice([0, 1, 4, -before]) * fraction),
            "keep": keep,
            "kind": r.choice(KINDS if keep == "all" else KINDS[:2]),
        }
    elif shape == "as_of":
        how = {"missing": r.choice(["none", "drop"])}
    elif shape == "tables":
        how = {"kind": r.choice(KINDS)}
    elif shape == "pattern":
        # (word, what the number of a row is to be by 3, what must not come before it or None)
        stages = [
            (r.choice(WORDS), r.randrange(3), r.choice([None, None, None, 0, 1, 2])) for _ in range(r.randint(2, 4))
        ]
        how = {"stages": stages, "not_at_the_end": r.choice([None, None, 0, 1]), "within": r.choice([6, 15, 40])}
        fraction = 1
    elif shape in PANED:
        fraction = 1
        how = paned.draw(r, shape, fraction)
    else:
        how = {
            "window": r.choice([TumblingWindow(6), SlidingWindow(9, 3)]),
            "kind": r.choice(KINDS),
            "keep": r.choice(["all", "first", "last"]),
        }
    sides = {"window": r.choice([2, 3]), "pattern": 1, **dict.fromkeys(PANED, 1)}.get(shape, 2)
    most = r.choice([4, 8]) if sides == 3 else r.choice([6, 20, 40])
    spouts = {f"s{i}": _rows(r, f"s{i}-", keys, most, fraction) for i in range(sides)}
    exactly = r.random() < 0.6
    return Program(
        seed,
        shape,
        how
        if shape in ("tables", "clock")
        else {**how, "lateness": 0 if shape == "panes" else (LATENESS + 0.5) * fraction},
        spouts,
        Settings(
            delivery="eo" if exactly else r.choice(["alo", "none"]),
            ackers=r.choice([0, 0, 1]),
            max_pending=r.choice([1, 2, 4]),
            pending_rows=r.choice([1, 64]),
            root_rows=r.choice([1, 2, 4, 16]),
            frame_rows=r.choice([1, 8, 512]),
            watch_values=False,
            reload_state=r.random() < 0.3,
        ),
        r.choice([1, 1, 2, 3]),
        r.randint(1, 2) if exactly and r.random() < 0.6 else 0,
        r.choice([0.1, 0.3]),
        r.randint(1, 2) if exactly and r.random() < 0.3 else 0,
    )


def build(program):
    """Its topology."""
    t, how = Topology("timed"), dict(program.how)
    sides = [t.spout(name, Items(rows)) for name, rows in program.spouts.items()]
    width = {"parallelism": program.parallelism}
    if program.shape == "within":
        out = sides[0].join("out", sides[1], time=at, **how, **width)
    elif program.shape == "as_of":
        out = sides[0].join_table("out", sides[1], as_of=True, time=at, **how, **width)
        out["unmatched"].sink("unmatched", Collect())
    elif program.shape == "pattern":
        out = sides[0].pattern("out", _pattern(how), time=at, lateness=how["lateness"], **width)
        out["timed_out"].sink("timed_out", Collect())
    elif program.shape == "tables":
        out = sides[0].join_tables("out", sides[1], **how, **width)
    elif program.shape in PANED:
        window = how.pop("window")
        out = sides[0].window("out", paned.Told, window, **how, **({} if "by" in how else {"time": at}), **width)
    else:
        out = t.join("out", sides, time=at, **how, **width)
    out.sink("rows", Collect())
    if program.shape not in ("tables", "clock"):
        out["late"].sink("late", Collect())
    return t


def _is(number):
    return lambda value: int(value[1].partition("-")[2]) % 3 == number


def _pattern(how):
    pattern = Pattern()
    for i, (word, number, no) in enumerate(how["stages"]):
        if i and no is not None:
            pattern = pattern.not_followed_by(f"no{i}", _is(no))
        pattern = getattr(pattern, word if i else "begin")(f"{i}", _is(number))
    if how["not_at_the_end"] is not None:
        pattern = pattern.not_followed_by("no", _is(how["not_at_the_end"]))
    return pattern.within(how["within"])


# what comes of it, in a plain loop ---------------------------------------------------------------------


def expected(program):
    """What each sink is to have, by its name."""
    how, sides = program.how, list(program.spouts.values())
    if program.shape == "within":
        before, after = how["within"]
        return {"rows": list(_near(sides[0], sides[1], before, after, how["kind"], how["keep"]))}
    if program.shape == "as_of":
        return _as_of(sides[0], sides[1], how["missing"])
    if program.shape == "tables":
        return {"rows": list(_tables(sides[0], sides[1], how["kind"]))}
    if program.shape == "pattern":
        return {"rows": list(_matches(sides[0], how))}
    return {"rows": list(_windows(sides, how["window"], how["kind"], how["keep"]))}


def _near(left, right, before, after, kind, keep):
    matched = set()
    for key, value in left:
        near = [v for k, v in right if k == key and value[0] - before <= v[0] <= value[0] + after]
        if keep == "first" and near:
            near = [min(near, key=at)]
        if keep == "last" and near:
            near = [max(reversed(near), key=at)]
        matched |= {(key, v) for v in near}
        yield from ((key, (value, v)) for v in near)
        if not near and kind in ("left", "outer"):
            yield key, (value, None)
    for key, value in right:
        if kind in ("right", "outer") and (key, value) not in matched:
            yield key, (None, value)


def _as_of(left, table, missing):
    rows, unmatched = [], []
    for key, value in left:
        held = [v for k, v in table if k == key and v[0] <= value[0]]
        newest = max(reversed(held), key=at) if held else None
        if newest is None and missing == "drop":
            unmatched.append((key, value))
        else:
            rows.append((key, (value, newest)))
    return {"rows": rows, "unmatched": unmatched}


def _matches(rows, how):
    for key in dict.fromkeys(key for key, _ in rows):
        values = sorted((value for k, value in rows if k == key), key=at)
        for start, value in enumerate(values):
            if _is(how["stages"][0][1])(value):
                within = [v for v in values[start:] if v[0] - value[0] < how["within"]]
                for found in _go_on(within, [0], how["stages"][1:], how["not_at_the_end"]):
                    yield key, {str(i): [within[at]] for i, at in enumerate(found)}


def _go_on(values, found, stages, not_at_the_end):
    behind = range(found[-1] + 1, len(values))
    if not stages:
        if not_at_the_end is None or not any(_is(not_at_the_end)(values[i]) for i in behind):
            yield found
        return
    (word, number, no), *rest = stages
    for i in behind:
        if no is not None and _is(no)(values[i]):
            return
        if _is(number)(values[i]):
            yield from _go_on(values, [*found, i], rest, not_at_the_end)
            if word == "followed_by":
                return
        if word == "next":
            return


def _tables(left, right, kind):
    lefts, rights = dict(left), dict(right)
    for key in {**lefts, **rights}:
        pair = lefts.get(key), rights.get(key)
        there = {"inner": all(pair), "left": pair[0], "right": pair[1], "outer": True}[kind]
        if there:
            yield key, pair


def _windows(sides, window, kind, keep):
    cells = {}
    for i, side in enumerate(sides):
        for key, value in side:
            for index in window.indices(value[0]):
                cells.setdefault((key, index), [[] for _ in sides])[i].append(value)
    for (key, _), rows in cells.items():
        if keep == "first":
            rows = [[min(side, key=at)] if side else [] for side in rows]
        elif keep == "last":
            rows = [[max(reversed(side), key=at)] if side else [] for side in rows]
        some = {"inner": False, "left": rows[0], "right": rows[-1], "outer": True}[kind]
        if all(rows) or some:
            yield from ((key, found) for found in itertools.product(*[side or [None] for side in rows]))


# running -------------------------------------------------------------------------------------------------


class TimedRun(Run):
    """A run of such a program."""

    def _start(self, **options):
        program = self.program
        return LocalRuntime(build(program), seed=program.seed, settings=program.settings, **options)


def _age(row):
    """How many of its key's values a row of a table has seen; sub-units commit in no order."""
    return sum(int(value[1].partition("-")[2]) for value in row[1] if value)


def run(seed, tell=None):
    """Run the program of a seed; what happened. Raises Failed."""
    program = draw(seed)
    want, turn = {} if program.shape in PANED else expected(program), TimedRun(program, tell)
    turn.go()
    if program.shape in PANED:
        paned.check(program, turn.landed)
    if program.shape == "tables":  # which side is quicker is not known: what the table comes to is
        turn.landed["rows"] = list(dict(sorted(turn.landed["rows"], key=_age)).items())
    late = {} if program.shape in ("tables", *PANED) else {"late": []}
    for sink, rows in {**want, **late}.items():
        wrong = differences(rows, turn.landed[sink])
        if wrong:
            raise Failed(f"{program}\n  {sink}: {wrong}")
    turn.counts["programs"] += 1
    turn.counts[program.shape] += 1
    turn.counts["tuples"] += sum(map(len, program.spouts.values())) + sum(map(len, want.values()))
    return turn.counts


def attempt(seed):
    """What happened with a seed, and what was wrong with it if something was."""
    try:
        return seed, run(seed), ""
    except Failed as failure:
        return seed, Counter(failed=1), str(failure)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return seed, Counter(failed=1), f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"


def many(seeds, jobs=1):
    """Run programs; all counts, and seed and reason of each that failed."""
    counts: Counter[str] = Counter()
    failures = []
    pool = multiprocessing.get_context("fork").Pool(jobs) if jobs > 1 else None
    try:
        for seed, happened, reason in pool.imap_unordered(attempt, seeds, 8) if pool else map(attempt, seeds):
            counts += happened
            if reason:
                failures.append((seed, reason))
    finally:
        if pool:
            pool.terminate()
            pool.join()
    return counts, failures


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.timed", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="programs have the seeds SEED * 1000000 + 0, 1, 2 ...")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run the program of this seed alone, with all that befalls it")
    given = parser.parse_args()
    if given.only is not None:
        print(draw(given.only))
        print(dict(run(given.only, lambda text: print(" ", text))))
        return 0
    begun = time.monotonic()
    first = given.seed * 1_000_000
    counts, failures = many(range(first, first + given.count), given.jobs)
    print(f"{dict(counts)}, in {time.monotonic() - begun:.0f} s")
    for seed, reason in sorted(failures):
        print(f"--only {seed}: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
