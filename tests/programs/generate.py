"""Random programs on LocalRuntime, each compared with a plain loop over the same rows.

A program is drawn from its seed: spouts, units with random state, keys, values and groupings, and what befalls them. `python -m
tests.programs.generate --count 10000 --seed 1 --jobs 2` runs many, `--only SEED` one of them with all that is to say of it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import itertools
import multiprocessing
import os
import random
import sys
import time
import traceback
import typing
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from esault import Topology, UsageError, by_key, partial_key, shuffle, single
from esault.flow.operators import hot_loop
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.operators.idle import IdleSweep
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import CalendarWindow, CountWindow, SessionWindow, SlidingWindow, TumblingWindow
from tests.programs import units
from tests.programs.mutations import canon, make
from tests.programs.units import SHAPES, How, opened

#: what keys are drawn from; of those that Python takes for one another a program has one kind
KEYS = ["a", "b", "ü", "", b"a", b"\xff", 2, -7, 2**70, (2, "a"), ("a", (b"b",)), ("a", 2), "2", (), ((), ("",))]
NUMBERS = [0, 1, (0,), (1, "x")]
TRUTHS = [False, True, (False,), (True, "x")]
#: seconds that a row may be behind the newest one
LATENESS = 5
#: seconds within which a row repeats another one of its key
WITHIN = 3
#: what a program can be asked for
CHANGES = ("split", "merge", "move", "scale")
#: turns of a run after which it is stuck
MOST_STEPS = 60_000


@dataclass(frozen=True)
class Unit:
    """One of a program's units."""

    kind: str
    how: How
    #: names of the units whose rows it gets, each with the steps in between
    inputs: tuple[tuple[str, tuple[str, ...]], ...]
    grouping: str = "by_key"
    parallelism: int = 1
    changes: bool = True
    idle: float | None = None
    window: Any = None
    #: keys in memory
    most: int | None = None


@dataclass
class Program:
    """All that a seed says."""

    seed: int
    spouts: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    kills: int = 0
    #: how often it is asked for a change, a checkpoint and so on
    restless: float = 0.0
    resumes: int = 0
    #: steps are bolts, which run in the processes of the units before them
    chains: bool = False

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}, {self.settings.delivery}, kills {self.kills}, resumes {self.resumes}, chains {self.chains}"
        ]
        lines += [f"  spout {name}: {len(rows)} rows" for name, rows in self.spouts.items()]
        for name, unit in self.units.items():
            places = ", ".join(" > ".join((sender, *steps)) for sender, steps in unit.inputs)
            lines.append(
                f"  {name}: {unit.kind} of {places}; {unit.grouping} x{unit.parallelism}"
                f"{' idle' if unit.idle else ''}{f' {unit.most} keys' if unit.most else ''} {unit.window or ''} {unit.how.shape}"
                f"{' lanes' if unit.how.lanes else ''}{' ordered' if unit.how.ordered else ''}"
                f"{' rekeyed' if unit.how.pool else ''}{'' if unit.changes else ' still'}"
            )
        return "\n".join(lines)


# drawing ----------------------------------------------------------------------------------------------


def _pool(r, alike):
    few = r.sample(KEYS, r.randint(1, 5))
    if r.random() < 0.4:
        others = [*NUMBERS, *TRUTHS] if alike else r.choice([NUMBERS, TRUTHS])
        few += r.sample(others, r.randint(1, 4))
    return few


def _rows(r, name, pool, shape, most):
    numbers, found, time = collections.Counter(), [], 0
    for _ in range(r.randint(1, most)):
        key = r.choice(pool)
        source = f"{name}/{key!r}"
        time += r.choice([0, 0, 1, 2, 8])
        moment = max(0, time - r.randint(0, LATENESS))
        # The same object in several rows is several on the other side.
        payload = opened(found[-1][1])[3] if found and r.random() < 0.1 else make(r)
        row = SHAPES[shape](source, numbers[source], r.getrandbits(32), payload, moment)
        numbers[source] += 1
        found.append((key, row))
    return found


def more_rows(r, program, most):
    """As many rows as a simulation is for, of the keys and the class that the program has."""
    for name, rows in program.spouts.items():
        pool = list({repr(key): key for key, _ in rows}.values())
        shape = next(shape for shape, make in SHAPES.items() if type(make("", 0, 0, None, 0)) is type(rows[0][1]))
        program.spouts[name] = _rows(r, name, pool, shape, most)


def draw(seed, alike=False):
    """The program of a seed."""
    r = random.Random(seed)
    exactly = r.random() < 0.6
    program = Program(
        seed,
        settings=Settings(
            delivery="eo" if exactly else r.choice(["alo", "none"]),
            ackers=r.choice([0, 0, 0, 1, 2]),
            max_pending=r.choice([1, 2, 4]),
            pending_rows=r.choice([1, 64]),
            root_rows=r.choice([1, 2, 4, 16]),
            frame_rows=r.choice([1, 8, 512]),
            watch_values=r.random() < 0.08,  # it takes as long as all else
            reload_state=r.random() < 0.3,
            # Not drawn: seeds mean what they meant. Without checks, each `process` that can be is written out at once.
            aligned_checkpoint_timeout=0.0 if seed % 2 else 1.0,
            checked_emits=0 if seed % 3 else 1000,
        ),
        kills=r.randint(1, 3) if exactly and r.random() < 0.6 else 0,
        restless=r.choice([0.1, 0.3, 0.6]),
        resumes=r.randint(1, 2) if exactly and r.random() < 0.3 else 0,
    )
    pool = _pool(r, alike)
    most = r.choice([6, 12, 30])
    #: sender -> (whether rows of a source come in order, whether of one source each, may be changed, behind a filter)
    ordered: dict[str, bool] = {}
    single_lane: dict[str, bool] = {}
    for i in range(r.choice([1, 1, 2])):
        name = f"s{i}"
        program.spouts[name] = _rows(r, name, pool, r.choice(list(SHAPES)), most)
        ordered[name] = single_lane[name] = True
    for i in range(r.choice([1, 1, 1, 2, 2, 3, 4])):
        name = f"u{i}"
        senders = r.sample(list(ordered), min(len(ordered), r.choice([1, 1, 1, 2, 3])))
        senders += [name for name in program.spouts if i == 0 and name not in senders]
        inputs = []
        for sender in senders:
            steps = tuple(r.choice(["map", "filter", "flat_map"]) for _ in range(r.choice([0, 0, 0, 1, 2])))
            inputs.append((sender, steps))
        in_order = all(ordered[sender] for sender in senders)
        lanes = len(senders) > 1 or not single_lane[senders[0]] or r.random() < 0.15
        kinds = ["bag", "bag_shuffled", "bag_partial", "bag_own", "bag_single"]
        if in_order:
            kinds += [
                "keyed",
                "keyed",
                "keyed",
                "says",
                "by_stream",
                "batch",
                "batch",
                "columns",
                "all",
                "waits",
                "ticks",
            ]
            if len(senders) == 1:
                kinds.append("reduce")
                kinds += ["row"] * 3 if not lanes else []
            if len(senders) == 1 and senders[0] in program.spouts:
                kinds += ["window"] * 4 + ["window_row"] * 2
        kind = r.choice(kinds)
        grouping = {
            "bag_shuffled": "shuffle", "bag_partial": "partial_key", "bag_own": "own", "bag_single": "single", "all": "single"
        }.get(kind, "by_key")  # fmt: skip
        kind = kind.partition("_")[0] if kind.startswith("bag") else kind
        rekeyed = kind not in ("bag", "window", "window_row", "reduce") and r.random() < 0.3
        window = None
        if kind.startswith("window"):
            window = r.choice(
                [TumblingWindow(10), SlidingWindow(12, 5), SlidingWindow(7, 7), SessionWindow(4), CountWindow(3)]
            )
            window = _relative(random.Random(f"{seed} {name} window"), window)
        how = How(
            name,
            r.getrandbits(32),
            r.choice(list(SHAPES)),
            lanes=lanes and window is None,
            ordered=kind not in ("bag",) and not isinstance(window, SessionWindow),
            pool=tuple(_pool(r, alike)) if rekeyed else (),
        )
        if kind == "window":  # by chance of its own, so that a seed's other programs stay as they are
            kind = random.Random(f"{seed} {name}").choice(["window", "window", "timers", "distinct", "aggregate"])
            window = {"window": window, "distinct": None}.get(kind, TumblingWindow(10))
        changes = r.random() < 0.75
        program.units[name] = Unit(
            kind,
            how,
            tuple(inputs),
            grouping,
            parallelism=1 if grouping == "single" else r.randint(1, 3),
            changes=changes,
            idle=r.choice([1e-6, 1e-3])
            if kind in ("keyed", "says", "by_stream", "row", "ticks", "waits") and r.random() < 0.4
            else None,
            window=window,
            most=_most_keys(random.Random(f"{seed} {name} keys"), kind, grouping),
        )
        # Rows of two sub-units come in some order: what has been changed has had two senders for one key.
        ordered[name] = kind != "bag" and window is None and not (changes and grouping == "by_key") and not rekeyed
        single_lane[name] = False
    if seed % 3 == 0:  # not drawn either
        program.chains = True
        program.settings = replace(program.settings, chaining=True)
    return program


def _most_keys(chance, kind, grouping):
    """Keys of a unit that are in memory; None: all, as where they must be."""
    may = kind in ("keyed", "says", "by_stream", "row") and grouping in ("by_key", "partial_key")
    return chance.choice([1, 2, 5]) if may and chance.random() < 0.3 else None


# building ---------------------------------------------------------------------------------------------

STEPS = {
    "map": lambda stream: stream.map(units.bump),
    "filter": lambda stream: stream.filter(units.keep),
    "flat_map": lambda stream: stream.flat_map(units.twice),
}
#: the same as bolts, in the sender's process
CHAINED = {"map": units.Bump, "filter": units.Keep, "flat_map": units.Twice}
BOLTS = {
    "keyed": units.Keyed,
    "says": units.Says,
    "by_stream": units.KeyedByStream,
    "waits": units.Waits,
    "ticks": units.Ticks,
    "batch": units.Batch,
    "columns": units.Columns,
    "all": units.All,
    "bag": units.Bag,
    "window": units.Window,
    "row": units.InARow,
    "timers": units.ByTimers,
    "window_row": units.WindowInARow,
}
GROUPINGS = {"by_key": by_key, "shuffle": shuffle, "partial_key": partial_key, "single": single, "own": units.Own}


def build(program, more=None, spout=lambda name: units.Nothing(), sink=lambda name: units.Landed(), tick_every=0.001):
    """The topology of a program, with a sink on each unit; `more(topology, streams of the spouts)` adds to it.

    `spout` and `sink` make one of each name.
    """
    t = Topology("program")
    streams = {name: t.spout(name, spout(name)) for name in program.spouts}
    if more is not None:
        more(t, streams)
    for name, unit in program.units.items():
        incoming = []
        for sender, steps in unit.inputs:
            stream = streams[sender]
            for i, each in enumerate(steps):
                if program.chains:
                    stream = stream.bolt(f"{sender}-{name}-{i}", CHAINED[each], shuffle())
                else:
                    stream = STEPS[each](stream)
            incoming.append(stream)
        factory = functools.partial(BOLTS[unit.kind], unit.how) if unit.kind in BOLTS else None
        if unit.kind == "reduce":
            initial = units.start(unit.how)
            fold = functools.partial(units.fold, unit.how)
            stream = incoming[0].reduce(name, fold, initial=initial, parallelism=unit.parallelism)
            stream = stream.map(units.total_row)
        elif unit.kind in ("timers", "distinct", "aggregate"):
            stream = incoming[0].timed(units.at, lateness=LATENESS)
            if unit.kind == "timers":
                stream = stream.bolt(name, factory, by_key(), parallelism=unit.parallelism)
            elif unit.kind == "distinct":
                stream = stream.distinct(name, within=WITHIN, parallelism=unit.parallelism)
                stream["late"].sink(f"{name}-late", sink(f"{name}-late"))
                stream = stream.map(functools.partial(units.passed_by, name))
            else:
                stream = stream.aggregate(name, units.AGGREGATES, unit.window, parallelism=unit.parallelism)
                stream["late"].sink(f"{name}-late", sink(f"{name}-late"))
                stream = stream.map(units.aggregate_row)
        elif unit.window is not None:
            timed = {} if isinstance(unit.window, CountWindow) else {"time": units.at, "lateness": LATENESS}
            stream = incoming[0].window(name, factory, unit.window, parallelism=unit.parallelism, **timed)
            if timed:
                stream["late"].sink(f"{name}-late", sink(f"{name}-late"))
        else:
            grouping = GROUPINGS[unit.grouping]
            options = {"parallelism": unit.parallelism, "idle_after": unit.idle, "keys_in_memory": unit.most}
            if unit.kind == "ticks":
                options["tick_every"] = tick_every
            if len(incoming) == 1:
                stream = incoming[0].bolt(name, factory, grouping(), **options)
            else:
                stream = t.bolt(name, factory, inputs={each: grouping() for each in incoming}, **options)
        stream.sink(f"{name}-out", sink(f"{name}-out"))
        streams[name] = stream
    return t


# the plain loop ---------------------------------------------------------------------------------------


def _through(steps, row):
    rows = [row]
    for each in steps:
        if each == "map":
            rows = [units.bump(row) for row in rows]
        elif each == "filter":
            rows = [row for row in rows if units.keep(row)]
        else:
            rows = [more for row in rows for more in units.twice(row)]
    return rows


class Bounds(typing.NamedTuple):
    """What `self.window` says."""

    start: Any
    end: Any


class PlainRow(units.InARow):
    """The bolt without an engine."""

    def __init__(self, how, key):
        super().__init__(how)
        self.key = key

    def finished(self):
        """What `finish` emits."""
        found = []
        self.emit = lambda key, value: found.append((key, value))
        self.finish()
        return found[0]


class Plain:
    """One unit as a plain loop."""

    def __init__(self, unit):
        self.unit = unit
        #: text of the key -> key, state
        self.states: dict[str, tuple[Any, Any]] = {}
        #: rows of windows, by key
        self.rows: dict[str, list[Any]] = {}

    def take(self, key, value):
        """What it emits for one row."""
        unit, how, name = self.unit, self.unit.how, repr(key)
        if unit.window is not None:
            self.rows.setdefault(name, []).append(value)
            self.states.setdefault(name, (key, None))
            return []
        if unit.kind == "row":
            if name not in self.states:
                self.states[name] = (key, PlainRow(how, key))
            return [self.states[name][1].work(key, value)]
        if unit.kind == "distinct":
            times = self.states.setdefault(name, (key, []))[1]
            if any(abs(units.at(value) - time) < WITHIN for time in times):
                return []
            times.append(units.at(value))
            return [(key, units.passed_by(how.unit, value))]
        if name not in self.states:
            self.states[name] = (key, units.bag() if unit.kind == "bag" else units.start(how))
        state = self.states[name][1]
        if unit.kind == "bag":
            return [units.store(state, how, key, value)]
        return [units.step(state, how, key, value)]

    def finish(self):
        """What it emits in the end."""
        unit, how = self.unit, self.unit.how
        if unit.kind in ("reduce", "distinct"):
            return []
        if unit.kind == "bag":
            return [row for key, state in self.states.values() for row in units.stored(state, how, key)]
        if unit.kind == "row":
            return [state.finished() for _, state in self.states.values()]
        if unit.window is None:
            return [units.last(state, how, key) for key, state in self.states.values()]
        found = []
        for name, rows in self.rows.items():
            key = self.states[name][0]
            for start, end, some in windows_of(unit.window, rows):
                if unit.kind == "aggregate":
                    found.append((key, units.aggregate_row(units.aggregated(start, end, some))))
                    continue
                if unit.kind == "window_row":
                    one = PlainRow(how, key)
                    one.window = Bounds(start, end)
                    for row in some:
                        one.work(key, copy.deepcopy(row))
                    found.append(one.finished())
                    continue
                state = units.start(how)
                for row in some:
                    units.step(state, how, key, copy.deepcopy(row))
                found.append(units.last(state, how, key, f"/{start}/{end}"))
        return found


def _gap(value):
    return 2 + units.at(value) % 4


def _relative(r, window):
    """The window, or another kind of the same family; by chance of its own, so that a seed's other programs stay as they are."""
    if isinstance(window, SessionWindow):
        others = [SessionWindow(_gap)]
    elif isinstance(window, CountWindow):
        others = [CountWindow(5, every=2), CountWindow(4, every=4)]
    else:
        others = [
            TumblingWindow(10, offset=3),
            SlidingWindow(12, 5, offset=-2),
            CalendarWindow("day", "Europe/Berlin"),
        ]
    return r.choice([window, r.choice(others)])


def windows_of(window, rows):
    """(start, end, rows) of a key's windows."""
    if isinstance(window, CountWindow):
        for end in range(window.step, len(rows) + window.step, window.step):
            yield max(0, end - window.size), end, rows[max(0, end - window.size) : end]
    elif isinstance(window, SessionWindow):
        some: list[Any] = []
        seconds, end = window.gap, 0.0
        gap: Any = seconds if callable(seconds) else lambda row: seconds
        for row in sorted(rows, key=units.at):
            if some and units.at(row) > end:
                yield units.at(some[0]), end, some
                some = []
            end = max(end, units.at(row) + gap(row)) if some else units.at(row) + gap(row)
            some.append(row)
        yield units.at(some[0]), end, some
    else:
        found: dict[Any, list[Any]] = {}
        for row in rows:
            for index in window.indices(units.at(row)):
                found.setdefault(index, []).append(row)
        for index, some in found.items():
            bounds = window.window(index)
            yield bounds.start, bounds.end, some


def expected(program):
    """unit -> what it emits, by a plain loop."""
    out: dict[str, list[Any]] = {}
    emitted = {name: list(rows) for name, rows in program.spouts.items()}
    for name, unit in program.units.items():  # senders stand before those that they send to
        plain = Plain(unit)
        mine = []
        for sender, steps in unit.inputs:
            for key, value in emitted[sender]:
                for row in _through(steps, copy.deepcopy(value)):
                    mine += plain.take(key, row)
        mine += plain.finish()
        out[name] = emitted[name] = mine
    return out


# the run ----------------------------------------------------------------------------------------------


class Failed(Exception):
    """A program did not do what a plain loop does."""


def may_change(local, name, kind, n=0):
    """Whether a unit can be changed so now, by what the driver knows; asked first, so that a refusal is a failure."""
    driver = local.driver
    unit = driver.units[name]
    if driver.phase != "running" or driver.busy or driver.draining or unit.change is not None or not unit.steady:
        return False
    if any(record.leaving for record in unit.subs.values()):
        return False
    after = {"split": unit.width + 1, "merge": unit.width - 1, "move": unit.width, "scale": n}[kind]
    news = {"split": 1, "merge": 0, "move": 1, "scale": max(0, n - unit.width)}[kind]
    if after < 1 or after > 5 or (kind == "scale" and n == unit.width) or (unit.plan.objects == "unit" and after != 1):
        return False
    return news <= driver.resources.free


def may_checkpoint(local):
    """Whether a checkpoint can begin now."""
    driver = local.driver
    checkpoints = driver.checkpoints
    return driver.phase == "running" and checkpoints.current is None and checkpoints.may_begin(driver.units.values())


class Run:
    """One program on LocalRuntime, and what befalls it."""

    def __init__(self, program, tell=None):
        self.program = program
        self.order = random.Random(program.seed + 1)
        self.chance = random.Random(f"{program.seed} chains")  # so that a seed's other programs stay as they are
        self.counts: Counter[str] = Counter()
        self.landed: dict[str, list[Any]] = {}
        self.tell = tell or (lambda text: None)
        self.kills, self.resumes = program.kills, program.resumes
        self.idles = any(unit.idle for unit in program.units.values())
        self.local = self._start()

    def _start(self, **options):
        program = self.program
        return LocalRuntime(
            build(program), spouts=program.spouts, seed=program.seed, settings=program.settings, **options
        )

    def go(self):
        """To the end."""
        local, start = self.local, 0
        for turn in itertools.count():
            if local.driver.phase == "ended":
                break
            if local.driver.phase == "running":
                self._befall()
                local = self.local
            if not local.step():
                local.wait()
            if turn - start > MOST_STEPS:
                raise Failed("stuck")
        if local.driver.failure is not None:
            raise Failed(local.driver.failure)
        self._gather()

    def _gather(self):
        self.counts["restores"] += len(self.local.driver.restores.all)
        self.counts["checkpoints"] += self.local.driver.run_checkpoints.taken
        for unit in self.local.driver.units.values():
            for record in unit.changes:
                self.counts["dropped" if record.dropped else record.kind] += 1
                self.counts["moved keys"] += record.moved_keys
        self.counts["chained"] += len(self.local.driver.plan.chained)
        for sink in self.local._landed:
            self.landed.setdefault(sink, []).extend((row.key, row.value) for row in self.local.landed(sink))

    def _befall(self):
        program, order, local = self.program, self.order, self.local
        if self.idles and order.random() < 0.3:
            local.clock.advance_to(local.clock() + order.choice([1e-5, 1e-3, 0.01]))  # nobody had the processor
        if order.random() > program.restless:
            return
        what = order.random()
        if what < 0.5:
            self._change()
        elif program.settings.delivery != "eo":
            return
        elif what < 0.85:
            if may_checkpoint(local):
                self.tell("checkpoint")
                local.checkpoint()
        elif what < 0.93 and self.kills:
            subs = [i for unit in local.driver.units.values() for i in unit.subs if local.lives(i)]
            subs += [i for i in local.ack_servers() if local.lives(i)]
            if subs and local.driver.restores.in_vain < 2:
                self.kills -= 1
                self.counts["kills"] += 1
                victim = order.choice(subs)
                self.tell(f"kill {victim}")
                local.kill(victim)
        elif self.resumes and local.kept:
            self._resume()

    def _unchain(self):
        """Give a chained bolt processes of its own, if that can be; whether it was asked for."""
        local, chance = self.local, self.chance
        driver, n = local.driver, chance.randint(1, 3)
        if not driver.plan.chained or driver.phase != "running" or driver.busy or driver.draining:
            return False
        name = chance.choice(sorted(driver.plan.chained))
        around = [unit for unit in driver.units.values() if any(bolt.name == name for bolt in unit.plan.bolts)]
        behind = self.program.units[name.split("-")[1]] if "-" in name else None
        if behind is not None and (behind.how.ordered or isinstance(behind.window, SessionWindow)):
            # Tuples that are shuffled among several pass each other, and the bolt behind wants them in order: a session those of one time.
            n = 1
        if any(unit.state.joining for unit in driver.units.values()) or n > driver.resources.free:
            return False
        if any(unit.changing or not unit.steady for unit in around):
            return False
        self.tell(f"unchain {name} {n}")
        self.counts["asked"] += 1
        try:
            local.scale(name, n)
        except UsageError as error:
            raise Failed(f"refused: {error}") from error
        return True

    def _change(self):
        order, local = self.order, self.local
        if self.program.chains and self.chance.random() < 0.3 and self._unchain():
            return
        names = [name for name, unit in self.program.units.items() if unit.changes]
        if not names:
            return
        name, kind, n = order.choice(names), order.choice(CHANGES), order.randint(1, 4)
        if not may_change(local, name, kind, n):
            return
        self.tell(f"{kind} {name} {n if kind == 'scale' else ''}")
        self.counts["asked"] += 1
        try:
            if kind == "scale":
                local.scale(name, n)
            else:
                getattr(local, kind)(name, order.choice(local.sub_units(name)))
        except UsageError as error:
            raise Failed(f"refused: {error}") from error

    def _resume(self):
        self.resumes -= 1
        before = self.local
        self._gather()
        widths = {
            name: self.order.randint(1, 4)
            for name, unit in self.program.units.items()
            if unit.changes and unit.grouping != "single"
        }
        self.tell(f"resume {widths}")
        self.counts["resumes"] += 1
        later = self._start(
            kept=before.driver.completed, last_number=before.driver.checkpoints.newest, parallelism=widths
        )
        later.state_store = before.state_store
        later._prepared.update(before._prepared)
        self.local = later


def _text(row):
    return canon(row)


def differences(want, got):
    """What is missing and what is too much."""
    want_texts, got_texts = Counter(map(_text, want)), Counter(map(_text, got))
    missing, more = want_texts - got_texts, got_texts - want_texts
    if not missing and not more:
        return ""
    some = [f"- {text[:300]}" for text in list(missing)[:3]] + [f"+ {text[:300]}" for text in list(more)[:3]]
    return f"{missing.total()} missing, {more.total()} too many of {len(want)}\n    " + "\n    ".join(some)


def run(seed, alike=False, tell=None):
    """Run the program of a seed; what happened. Raises Failed."""
    program = draw(seed, alike)
    want = expected(program)
    run = Run(program, tell)
    with counted_put_aways() as away, written_out() as written:
        run.go()
    for name in program.units:
        wrong = differences(want[name], run.landed[f"{name}-out"])
        if wrong:
            raise Failed(f"{name}: {wrong}")
        if run.landed.get(f"{name}-late"):
            raise Failed(f"{name}: {len(run.landed[f'{name}-late'])} rows were late")
    run.counts["programs"] += 1
    run.counts["tuples"] += sum(map(len, program.spouts.values())) + sum(map(len, want.values()))
    run.counts["put-aways"] += away[0]
    run.counts["written out"] += written[0]
    return run.counts


@contextlib.contextmanager
def counted_put_aways():
    """A list whose one number counts the objects that are put away because they are idle."""
    count = [0]
    sweep = IdleSweep.sweep

    def counted(self, now, names):
        for idle in sweep(self, now, names):
            count[0] += len(idle)
            yield idle

    IdleSweep.sweep = counted
    try:
        yield count
    finally:
        IdleSweep.sweep = sweep


@contextlib.contextmanager
def written_out():
    """A list whose one number counts the batches that are not processed by calls, since no unit has few tuples to begin with."""
    count = [0]
    before, ready = hot_loop.HOT, HotLoop.ready

    def counted(self, cls, rows, with_ids):
        found = ready(self, cls, rows, with_ids)
        count[0] += found
        return found

    hot_loop.HOT, HotLoop.ready = 0, counted
    try:
        yield count
    finally:
        hot_loop.HOT, HotLoop.ready = before, ready


# the command ------------------------------------------------------------------------------------------


def attempt(seed, alike=False):
    """What happened with a seed, and what was wrong with it if something was."""
    try:
        return seed, run(seed, alike), ""
    except Failed as failure:
        return seed, Counter(failed=1), str(failure).partition("\nTraceback")[0]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return seed, Counter(failed=1), f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"


#: what must have happened in a run of many
HAPPENED = (
    "split",
    "merge",
    "move",
    "rescale",
    "moved keys",
    "kills",
    "restores",
    "checkpoints",
    "put-aways",
    "written out",
    "resumes",
    "chained",
    "unchain",
)


def many(seeds, jobs=1, alike=False, tell=None, most_failures=None):
    """Run programs; all counts, and seed and reason of each that failed."""
    counts: Counter[str] = Counter()
    failures = []
    work = functools.partial(attempt, alike=alike)
    pool = multiprocessing.get_context("fork").Pool(jobs) if jobs > 1 else None
    try:
        for seed, happened, reason in pool.imap_unordered(work, seeds, 8) if pool else map(work, seeds):
            counts += happened
            if reason:
                failures.append((seed, reason))
            if tell:
                tell(counts)
            if len(failures) == most_failures:
                break
    finally:
        if pool:
            pool.terminate()
            pool.join()
    return counts, failures


def said(counts):
    """The counts in one line."""
    names = ("split", "merge", "move", "rescale", "dropped")
    return (
        f"{counts['programs']} programs, {counts['tuples']} tuples, {counts['asked']} changes asked for ("
        + ", ".join(f"{counts[name]} {name}" for name in names)
        + f"; {counts['moved keys']} keys moved), {counts['checkpoints']} checkpoints, {counts['kills']} kills, "
        f"{counts['restores']} restores, {counts['resumes']} resumes, {counts['put-aways']} put-aways, {counts['chained']} chained bolts, "
        f"{counts['unchain']} got processes, "
        f"{counts['failed']} failed"
    )


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.generate", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="programs have the seeds SEED * 1000000 + 0, 1, 2 ...")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run the program of this seed alone, with all that befalls it")
    parser.add_argument("--look-alikes", action="store_true", help="keys such as 1 and True in one program")
    given = parser.parse_args()
    if given.only is not None:
        print(draw(given.only, given.look_alikes))
        print(said(run(given.only, given.look_alikes, lambda text: print(" ", text))))
        return 0
    begun = told = time.monotonic()

    def tell(counts):
        nonlocal told
        now = time.monotonic()
        if now - told > 1:
            told = now
            done = counts["programs"] + counts["failed"]
            rate = done / (now - begun)
            print(
                f"\r{done}/{given.count}, {counts['failed']} failed, {rate:.0f}/s ", end="", file=sys.stderr, flush=True
            )

    seeds = range(given.seed * 1_000_000, given.seed * 1_000_000 + given.count)
    counts, failures = many(seeds, given.jobs, given.look_alikes, tell)
    seconds = time.monotonic() - begun
    print(file=sys.stderr)
    used = sum(os.times()[:4])
    print(f"{said(counts)}, in {seconds:.0f} s, {used:.0f} s of processors: {given.count / used:.1f} a second and core")
    for seed, reason in sorted(failures):
        print(f"--only {seed}: {reason}")
    never = [name for name in HAPPENED if not counts[name]]
    if never:
        print(f"never happened: {', '.join(never)}")
    return 1 if failures or never else 0


if __name__ == "__main__":
    sys.exit(main())
