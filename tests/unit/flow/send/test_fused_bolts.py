"""Chained bolts in one loop: the same comes out, is counted and is said as where each takes a batch by itself, and as unchained."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from small_bolts import RunningSum as Sum

from esault import Topology, TopologyFailed, UsageError, by_key, dead_letter, shuffle, skip
from esault.flow.operators import hot_loop
from esault.flow.send import fused_bolts
from esault.flow.send.outputs import Outputs
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.fused_map import FusedMap
from tests.programs.units import Landed, Nothing
from tests.shared import depth

SETTINGS = Settings(checked_emits=0, watch_values=False, reload_state=False, root_rows=20, chaining=True)

HELPERS = '''
import json

from esault import Bolt, Topology, TopologyFailed, UsageError, by_key, dead_letter, shuffle, skip

TABLE = {"add": lambda value: value + 7, 1: len}
CLOSED = []


def add_one(value):
    return value + 1


def halved(value):
    return add_one(value) // 2 if value > 3 else value


def text_of(value):
    """Text."""
    return f"{value}."


def opened(value):
    return json.loads(json.dumps(value))


def refused(value):
    return 1 // (value - REFUSED)


CLOSED += [add_one, halved]
'''
#: what stands in a `process`: one for one with nothing but what stands there, and otherwise
CLOSED = (
    "self.emit(key, value + 1)",
    "self.emit(key, add_one(value))",
    "self.emit(key, halved(add_one(value)))",
    "self.emit(key, CLOSED[1](value) * 3)",
    'self.emit(key, TABLE["add"](value))',
    "self.emit(key, int(text_of(value)[:-1]))",
    "self.emit(key, TABLE[1](str(value)) + value)",
    "self.emit(key, value if value % 2 else -value)",
)
OTHER = (
    "self.emit(key, opened(value))",
    "self.emit(key, [value])\n\nclass Of{name}(Bolt):\n    def process(self, key, value):\n        value.append(1)\n"
    "        self.emit(key, value[0] + len(value))",
    "if value % 3:\n            self.emit(key, value)",
    "for each in range(value % 3):\n            self.emit(key, value + each)",
    "self.emit((key, value % 2), value)",
    "self.emit(key, value + self.base)",
    "self.emit(key, value)\n        self.emit(key, value, stream='beside')",
)


def chain_of(seed: int) -> tuple[str, list[tuple[str, dict[str, Any]]], bool]:
    """A module of a random row of bolts, their names with what is said of each, and whether the first two can be in one loop."""
    order = random.Random(seed)
    text, bolts, closed = HELPERS.replace("REFUSED", str(order.choice([10**9, 60]))), [], []
    for i in range(order.randrange(2, 7)):
        name = f"Bolt{i}"
        body = order.choice(CLOSED if order.random() < 0.75 else OTHER)
        options: dict[str, Any] = {}
        if order.random() < 0.15:
            body = "self.emit(key, value + refused(value))"
            options["on_error"] = order.choice([skip(), dead_letter("letters")])
        elif order.random() < 0.05:
            body = "self.emit(key, value + refused(value))"
        closed.append(body in CLOSED)
        if "beside" in body:
            options["streams"] = ("beside",)
        text += f"\n\nclass {name}(Bolt):\n    base = 3\n\n    def process(self, key, value):\n        {body.format(name=name)}\n"
        bolts.append((name, options))
        if "append" in body:
            bolts.append((f"Of{name}", {}))
    return text, bolts, closed[0] and closed[1]


def loaded(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Any]:
    """Loads a module from its text."""
    names: list[str] = []

    def load(text: str) -> ModuleType:
        names.append(f"fused_{len(names)}_{tmp_path.name}")
        return loaded(tmp_path / f"{names[-1]}.py", text)

    yield load
    for name in names:
        del sys.modules[name]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches ran in one loop; its bolts are hot soon, and nobody looks at what each emits."""
    ran: list[int] = []
    run = FusedMap.run
    monkeypatch.setattr(hot_loop, "HOT", 60)
    monkeypatch.setattr(fused_bolts, "SAMPLED", 5)
    monkeypatch.setattr(Outputs, "_observed", lambda self: False)
    monkeypatch.setattr(FusedMap, "run", lambda self, values: ran.append(1) or run(self, values))
    return ran


ROWS = [(f"k{i % 7}", i % 100) for i in range(500)]


def put_out(bolts: list[tuple[Any, dict[str, Any]]], rows: Any = ROWS, **settings: Any) -> tuple[Any, ...]:
    """What comes of a row of bolts: rows in their order, counts by unit, dead letters; or what is said of its end."""
    t = Topology("fused")
    stream: Any = t.spout("rows", Items(rows))
    for i, (bolt, options) in enumerate(bolts):
        stream = stream.bolt(f"{i}-{bolt.__name__}", bolt, grouping=shuffle(), **options)
    stream.sink("out", Collect())
    local = LocalRuntime(t, settings=replace(SETTINGS, **settings))
    try:
        local.run_until_drained()
    except TopologyFailed as error:
        return (re.sub(r"0x\w+", "", str(error)),)
    units = local.report().units
    counts = {name: (unit.tuples_in, unit.tuples_out, unit.errors, unit.dead_letters) for name, unit in units.items()}
    landed = [(row.key, row.value) for row in local.landed("out")]
    letters = [(each["unit"], each["key"], each["hook"], each["error"]) for each in local.dead_letters]
    return landed, counts, sorted(letters)


@pytest.mark.parametrize("seed", depth.seeds(200))
def test_a_row_of_any_bolts_does_in_one_loop_what_it_does_otherwise(batches, module, monkeypatch, seed):
    text, names, begins_closed = chain_of(seed)
    made = module(text)
    bolts = [(getattr(made, name), options) for name, options in names]
    fused = put_out(bolts)
    assert batches or not begins_closed
    batches.clear()
    monkeypatch.setattr(hot_loop, "HOT", 10**9)
    by_batch, apart = put_out(bolts), put_out(bolts, chaining=False)
    assert not batches
    assert fused == by_batch
    if len(fused) > 1:
        assert fused == apart


MANY = [(f"k{i % 7}", i) for i in range(3000)]
FAULTS = ("kill", "kill", "checkpoint", "0-Bolt0", "1-Bolt1", "2-Bolt2", "3-Bolt3")


@pytest.mark.parametrize("seed", depth.seeds(60))
def test_whatever_befalls_a_run_each_tuple_is_processed_once(done_in_all, batches, module, seed):
    """Processes die, all goes back to a checkpoint, and bolts get processes of their own, in the midst of it."""
    order = random.Random(seed)
    text = HELPERS.replace("REFUSED", "10**9")
    for i in range(4):
        text += f"\n\nclass Bolt{i}(Bolt):\n    def process(self, key, value):\n        {order.choice(CLOSED[:5])}\n"
    made = module(text)
    t = Topology("fused")
    stream: Any = t.spout("rows", Nothing())
    for i in range(4):
        stream = stream.bolt(f"{i}-Bolt{i}", getattr(made, f"Bolt{i}"), grouping=shuffle())
    stream.sink("out", Landed())
    stream.bolt("sums", Sum, by_key()).sink("totals", Landed())
    settings = replace(SETTINGS, delivery=Delivery.EXACTLY_ONCE, checkpoint_every=0.02)
    local = LocalRuntime(t, spouts={"rows": MANY}, seed=seed, settings=settings)
    for _ in range(order.randrange(1, 6)):
        for _ in range(order.randrange(1, 400)):
            if not local.step():
                local.wait()
            if local.driver.phase == "ended":
                break
        befalls(local, order)
    local.run_until_drained()
    emitters = [process_of(getattr(made, f"Bolt{i}")) for i in range(4)]
    wanted = Counter((key, through(emitters, value)) for key, value in MANY)
    assert Counter((row.key, row.value) for row in local.landed("out")) == wanted
    totals: dict[str, tuple[int, int]] = {}
    for row in local.landed("totals"):
        totals[row.key] = max(totals.get(row.key, (0, 0)), row.value)
    assert {key: total for key, (_, total) in totals.items()} == {
        name: sum(value * count for (key, value), count in wanted.items() if key == name) for name in totals
    }
    assert sum(count for count, _ in totals.values()) == len(MANY)
    done_in_all.counts["in one loop"] += len(batches)
    done_in_all.of(local, "in one loop", "checkpoint", "death", "unchain")


def befalls(local: LocalRuntime, order: random.Random) -> None:
    what = order.choice(FAULTS)
    if local.driver.phase != "running":
        return
    try:
        if what == "kill":
            living = [i for unit in local.driver.units.values() for i in unit.subs if local.lives(i)]
            local.kill(order.choice(living))
        elif what == "checkpoint":
            local.checkpoint()
        else:
            local.driver.commands.scale(what, order.randrange(1, 3), local.now())
    except UsageError as error:
        words = ("try again", "cannot be changed", "no checkpoint", "being changed", "being given processes")
        assert any(each in str(error) for each in words), error


def process_of(cls: type[Any]) -> Any:
    """What a bolt emits for a value."""
    out: list[Any] = []
    bolt: Any = cls()
    vars(bolt)["emit"] = lambda key, value: out.append(value)

    def call(value: Any) -> Any:
        bolt.process(None, value)
        return out.pop()

    return call


def through(functions: list[Any], value: Any) -> Any:
    for function in functions:
        value = function(value)
    return value
