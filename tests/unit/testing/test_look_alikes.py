"""Keys that Python takes for equal (1 and True) are different keys: whatever is kept of them, each has its own."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import depth
import numpy as np
import pytest
from counting import Landed
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_bolts import Tuples as Count
from test_checkpoints import walk

from esault import BatchBolt, Bolt, Columns, EndOfStream, Spout, Topology, TopologyFailed, by_key, partial_key
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.testing import LocalRuntime
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

pytestmark = pytest.mark.slow  # not in `make quick`

#: of each of them Python takes all for one
FAMILIES: list[list[Any]] = [
    [0, False],
    [1, True],
    [(1,), (True,)],
    [("a", 0), ("a", False)],
    [(0, 1), (False, 1), (0, True), (False, True)],
    [((1,), "x"), ((True,), "x")],
]
ALIKE = [key for family in FAMILIES for key in family]
#: so many others that the few which are touched between two checkpoints are written alone
OTHERS = [*(f"k{i}" for i in range(40)), *range(2, 40), *(("b", i) for i in range(2, 20)), b"0", "0", "1"]
CODEC = Codec()
EXACTLY = Settings(delivery="eo", max_pending=2, root_rows=4, watch_values=False)


def keys_of(seed, count=260 if depth.PROFILE == "deep" else 160):
    order = random.Random(seed)
    return [*OTHERS, *(order.choice(ALIKE if order.random() < 0.8 else OTHERS) for _ in range(count))]


def named(keys):
    """Counts by what tells keys apart."""
    return Counter(map(repr, keys))


class Trickle(Spout):
    """One row each millisecond: what is idle now and then is so between them."""

    def __init__(self, keys):
        self.keys, self.next = keys, 0

    def open(self, context):
        self.context, self.begun, self.first = context, context.now(), None

    def read(self, limit):
        if self.next >= len(self.keys):
            raise EndOfStream
        if self.first is None:
            self.begun, self.first = self.context.now(), self.next
        end = min(self.first + 1 + int((self.context.now() - self.begun) * 1000), self.next + limit, len(self.keys))
        rows = [(self.keys[i], {"at": i, "n": i}) for i in range(self.next, end)]
        self.next = end
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class AsyncCount(Count):
    async def process(self, key, value):
        self.total += 1
        self.emit(key, self.total)


class Lives(Bolt):
    """Says at its end what it had."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1

    def finish(self):
        self.emit(self.key, self.total)


class AsyncLives(Lives):
    async def process(self, key, value):
        self.total += 1


class Rows(BatchBolt):
    def process_batch(self, rows):
        out = []
        for key, _ in rows:
            self.keyed[key] = self.keyed.get(key, 0) + 1
            out.append((key, self.keyed[key]))
        self.emit_batch(out)


class Columnar(BatchBolt):
    def process_columns(self, keys, values):
        out = []
        for key in keys:
            if key not in self.keyed:
                self.keyed[key] = 0
            self.keyed[key] += 1
            out.append(self.keyed[key])
        self.emit_columns(keys, np.array(out))


class AtTheEnd(BatchBolt):
    def process_batch(self, rows):
        for key, _ in rows:
            self.keyed.setdefault(key, 0)
            self.keyed.update({key: self.keyed.pop(key) + 1})

    def finish(self):
        assert len(self.keyed) == len(list(self.keyed)) == len(self.keyed.keys()) == len(self.keyed.values())
        self.emit_batch(list(self.keyed.items()))


def ran(done, keys, bolt, seed, kills, window=None, grouping=None, **options):
    t = Topology("alike")
    rows = t.spout("rows", Trickle(keys))
    if window is not None:
        timed = {} if isinstance(window, CountWindow) else {"time": lambda value: value["at"], "lateness": 5}
        rows.window("count", bolt, window, parallelism=2, **timed).sink("out", Landed())
    else:
        rows.bolt("count", bolt, grouping or by_key(), parallelism=2, **options).sink("out", Landed())
    local = LocalRuntime(t, seed=seed, settings=EXACTLY)
    walk(local, random.Random(seed), kills=kills, rate=0.03, kill_rate=0.004)
    done.of(local, "change", "checkpoint", "death")
    return local


def running(local):
    """How often each key was counted; each of its totals once."""
    totals = {}
    for row in local.landed("out"):
        totals.setdefault(repr(row.key), []).append(row.value)
    assert all(sorted(values) == list(range(1, len(values) + 1)) for values in totals.values())
    return Counter({key: len(values) for key, values in totals.items()})


def summed(local):
    """How often each key was counted, in all of its lives."""
    totals = Counter()
    for row in local.landed("out"):
        totals[repr(row.key)] += row.value
    return totals


def check_cuts(local, keys, total=lambda state: state["total"]):
    """What each checkpoint holds is what the rows before it amount to."""
    for kept in local.kept:
        found, (_, rows) = {}, CODEC.unpack(kept.units["rows"].positions[0])
        for chain in kept.units["count"].chains:
            items = {}
            for piece in chain:
                items.update((repr(key), state) for key, state in local.state_store.read(piece))
            found.update((key, total(CODEC.unpack(state))) for key, state in items.items() if state is not None)
        assert found == named(keys[:rows]), kept.number


def pieces(local):
    """Pieces of state that hold but what had changed."""
    return [piece for kept in local.kept for chain in kept.units["count"].chains for piece in chain if not piece.base]


@pytest.mark.parametrize("bolt", [Count, AsyncCount])
def test_after_a_death_each_of_them_has_been_counted_as_often_as_it_came(bolt):
    keys = [*OTHERS, *[1, True] * 20]
    options = {"concurrency": 4} if bolt is AsyncCount else {}
    t = Topology("alike")
    t.spout("rows", Trickle(keys)).bolt("count", bolt, by_key(), **options).sink("out", Landed())
    local = LocalRuntime(t, settings=EXACTLY)
    for until in range(len(OTHERS) + 2, len(keys), 6):
        while len(local.emitted("count")) < until:
            local.step() or local.wait()
        local.checkpoint()
        while local.driver.checkpoints.current is not None:
            local.step() or local.wait()
    assert pieces(local)
    local.kill(local.sub_units("count")[0])
    local.run_until_drained()
    assert running(local) == named(keys)


SEEDS = given(st.integers(0, 1 << 30), st.integers(0, 6))
MANY = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


#: bolts, and how they are used; in each run of the tests those that keep state in most ways
COUNTING = [
    (Count, {}),
    (Count, {"idle_after": 0.01}),
    (Count, {"idle_after": 0.003, "grouping": partial_key()}),
    (AsyncCount, {"concurrency": 4, "idle_after": 0.01}),
    (Rows, {}),
    (Columnar, {}),
]
LIVING = [
    (Lives, {"expire_after": 0.05}),
    (Lives, {"expire_after": 0.05, "idle_after": 0.005}),
    (AsyncLives, {"expire_after": 0.05, "concurrency": 4}),
    (AtTheEnd, {}),
    (Lives, {"window": TumblingWindow(130)}),
    (Lives, {"window": CountWindow(30)}),
    (Lives, {"window": SessionWindow(40)}),
]


@pytest.mark.parametrize(("bolt", "options"), [COUNTING[i] for i in depth.chosen(range(6), (1, 3, 5))])
@MANY
@SEEDS
@example(seed=193, kills=4)
@example(seed=288601, kills=4)
def test_running_counts_are_exact_whatever_is_changed_and_dies(done, bolt, options, seed, kills):
    keys = keys_of(seed)
    local = ran(done, keys, bolt, seed, kills, **options)
    if "grouping" in options:  # two objects for each key
        assert named(row.key for row in local.landed("out")) == named(keys)
        return
    assert running(local) == named(keys)
    check_cuts(local, keys, (lambda state: state) if issubclass(bolt, BatchBolt) else lambda state: state["total"])
    assert pieces(local) or issubclass(bolt, BatchBolt)


@pytest.mark.parametrize(("bolt", "options"), [LIVING[i] for i in depth.chosen(range(7), (1, 3, 5))])
@MANY
@SEEDS
@example(seed=193, kills=4)
@example(seed=288601, kills=4)
def test_what_lives_and_windows_hold_adds_up(done, bolt, options, seed, kills):
    keys = keys_of(seed)
    local = ran(done, keys, bolt, seed, kills, **options)
    assert summed(local) == named(keys)
    if "expire_after" in options:
        assert len(local.landed("out")) >= len(named(keys))  # some may have lived more than once


@MANY
@SEEDS
@example(seed=193, kills=4)
@example(seed=288601, kills=4)
def test_in_windows_that_overlap_each_row_is_in_each_of_them(done, seed, kills):
    keys = keys_of(seed)
    local = ran(done, keys, Lives, seed, kills, window=SlidingWindow(200, 100))
    assert summed(local) == Counter({key: 2 * n for key, n in named(keys).items()})


def test_one_that_is_used_does_not_keep_the_other_alive():
    t = Topology("alike")
    keys = [True, *[1] * 200]
    t.spout("rows", Trickle(keys)).bolt("count", Lives, by_key(), expire_after=0.02).sink("out", Landed())
    local = LocalRuntime(t)
    local.run_for(0.15)
    assert [(repr(key), total) for key, total in local.emitted("count")] == [("True", 1)]
    local.run_until_drained()
    assert [(repr(key), total) for key, total in local.emitted("count")] == [("True", 1), ("1", 200)]


def test_a_key_whose_rows_are_all_late_leaves_nothing_behind():
    class Late(Trickle):
        def read(self, limit):
            rows = super().read(limit)
            return [(key, {"at": value["at"] if type(key) is str else -1000, "n": 0}) for key, value in rows]

    t = Topology("alike")
    rows = t.spout("rows", Late(["a"] * 50 + ALIKE + ["a"] * 50))
    rows.window("count", Lives, TumblingWindow(5), time=lambda value: value["at"], lateness=0)["late"].sink(
        "late", Landed()
    )
    local = LocalRuntime(t)
    while len(local.emitted("count", "late")) < len(ALIKE):
        local.step() or local.wait()
    assert local._processes[local.sub_units("count")[0]].core.operator.elements.count == 1
    local.run_until_drained()


@pytest.mark.parametrize("seed", depth.seeds(6))
def test_a_copy_that_is_brought_up_to_date_counts_on(seed):
    keys = keys_of(seed, 400)
    t = Topology("alike")
    t.spout("rows", Trickle(keys)).bolt("count", Count, by_key(), replicas=2).sink("out", Landed())
    local = LocalRuntime(t, seed=seed, settings=Settings(max_pending=2, root_rows=4, watch_values=False))
    order = random.Random(seed)
    for unit in ("count", "count~1", "count"):
        until = len(local.emitted("count~merger")) + order.randint(40, 90)
        while len(local.emitted("count~merger")) < until or not all(map(local.lives, local.sub_units(unit))):
            local.step() or local.wait()
        local.kill(local.sub_units(unit)[0])
        while not local.lives(local.sub_units(unit)[0]) or local.driver.units[unit].down:
            local.step() or local.wait()
    local.run_until_drained()
    assert running(local) == named(keys)
    assert any(change.kind == "copy" for unit in local.driver.units.values() for change in unit.changes)


# self.keyed ------------------------------------------------------------------------------------


class Arrays(Spout):
    """Booleans and the numbers that Python takes them for, as arrays of NumPy."""

    def __init__(self):
        self.left = 40

    def read(self, limit):
        if not self.left:
            raise EndOfStream
        self.left -= 1
        keys = np.array([True, False, True]) if self.left % 2 else np.array([1, 0, 1])
        return Columns(keys, np.arange(3))


class OfArrays(BatchBolt):
    def process_columns(self, keys, values):
        for key in keys.tolist():
            self.keyed[key] = self.keyed.get(key, 0) + 1

    def finish(self):
        self.emit_batch(sorted(self.keyed.items(), key=repr))


@pytest.mark.parametrize("parallelism", [1, 4])
def test_keys_out_of_arrays_have_their_own_entries_too(parallelism):
    t = Topology("alike")
    t.spout("rows", Arrays()).bolt("count", OfArrays, by_key(), parallelism=parallelism).sink("out", Landed())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert sorted(map(repr, local.emitted("count"))) == ["(0, 20)", "(1, 40)", "(False, 20)", "(True, 40)"]


def test_ordinary_keys_have_a_plain_dict():
    t = Topology("alike")
    t.spout("rows", Trickle([*OTHERS, 0, 1, (0, 1)])).bolt("count", Rows, by_key()).sink("out", Landed())
    local = LocalRuntime(t)
    while len(local.emitted("count")) < len(OTHERS) + 3:
        local.step() or local.wait()
    assert type(local._processes[local.sub_units("count")[0]].core.operator.object.keyed) is dict


class Own(Rows):
    def open(self, context):
        self.keyed = Counter()


class HoldsOn(Rows):
    def open(self, context):
        self.mine = self.keyed

    def process_batch(self, rows):
        for key, _ in rows:
            self.mine[key] = self.mine.get(key, 0) + 1


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (
            Own,
            "Own.keyed is a collections.Counter that the bolt made, in which True and 1 are one key; keep the dict that",
        ),
        (HoldsOn, "HoldsOn holds on to a dict that was its self.keyed before a key held a bool; write self.keyed"),
    ],
)
def test_a_dict_that_cannot_tell_them_apart_is_refused_with_the_remedy(bolt, said):
    t = Topology("alike")
    t.spout("rows", Trickle(["a", 1, True])).bolt("count", bolt, by_key()).sink("out", Landed())
    with pytest.raises(TopologyFailed) as caught:
        LocalRuntime(t).run_until_drained()
    assert f"unit 'count': {said}" in str(caught.value)
