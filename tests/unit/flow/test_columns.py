"""Columns through whole topologies: arrays where a unit takes columns, plain Python objects everywhere else."""

from __future__ import annotations

import importlib.util
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from esault import (
    BatchBolt,
    Bolt,
    Columns,
    EndOfStream,
    Grouping,
    PayloadError,
    Spout,
    Topology,
    TopologyError,
    TopologyFailed,
    broadcast,
    by_key,
    dead_letter,
    fail,
    partial_key,
    shuffle,
    single,
    skip,
)  # fmt: skip
from esault.flow.delivery.root_size import RootSize
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime

_spec = importlib.util.spec_from_file_location("small", Path(__file__).with_name("small.py"))
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)


class Arrays(Spout):
    """Columns of two arrays, and where it stands."""

    def __init__(self, keys, values):
        self.keys, self.values = keys, values
        self.next = 0

    def read(self, limit):
        if self.next >= len(self.values):
            raise EndOfStream
        part = slice(self.next, self.next + limit)
        self.next += limit
        return Columns(None if self.keys is None else self.keys[part], self.values[part])

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Plain(Bolt):
    """Emits what it gets, and of which types that is."""

    def process(self, key, value):
        self.emit(key, (type(key).__name__, type(value).__name__, value))


class PlainBatch(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch([(key, (type(key).__name__, type(value).__name__, value)) for key, value in rows])


class Kinds(BatchBolt):
    """Emits what kind of columns it gets."""

    def process_columns(self, keys, values):
        self.emit_columns([0], [(type(keys).__name__, type(values).__name__, len(values))])


class Sums(BatchBolt):
    """The sum of each key."""

    def process_columns(self, keys, values):
        different, inverse = np.unique(np.asarray(keys), return_inverse=True)
        for key, value in zip(different.tolist(), np.bincount(inverse, np.asarray(values)).tolist()):
            self.keyed[key] = self.keyed.get(key, 0.0) + value

    def finish(self):
        self.emit_columns(self.keyed.keys(), self.keyed.values())


def through(spout, bolt, grouping=None, parallelism=1, **options):
    t = Topology("columns")
    out = t.spout("rows", spout).bolt("worker", bolt, grouping=grouping or by_key(), parallelism=parallelism, **options)
    out.sink("out", Collect())
    return t


#: small roots, few of them on their way
FEW = Settings(max_pending=4, root_rows=64, root_array_rows=64)
N = 500
INTS = np.arange(N) % 7
PAIRS = [
    (INTS, np.arange(N) * 0.5, "int", "float"),
    (np.array([f"k{i}" for i in range(N)]), np.arange(N) % 2 == 0, "str", "bool"),
    (pa.array([f"k{i}" for i in range(N)]), pa.array([date(2026, 7, 1)] * N), "str", "date"),
    (INTS, pa.record_batch({"a": list(range(N)), "b": [[1]] * N}), "int", "dict"),
    ([f"k{i}" for i in range(N)], np.arange(N), "str", "int"),
    (np.array([b"ab"] * N), [("x", i) for i in range(N)], "bytes", "tuple"),
    (None, np.arange(N), "NoneType", "int"),
]


@pytest.mark.parametrize("bolt", [Plain, PlainBatch])
@pytest.mark.parametrize(("keys", "values", "key", "value"), PAIRS)
def test_whoever_takes_rows_gets_plain_objects_of_arrays(bolt, keys, values, key, value):
    grouping = shuffle() if keys is None else by_key()
    local = small.run(through(Arrays(keys, values), bolt, grouping, parallelism=2))
    found = local.emitted("worker")
    assert {kinds[:2] for _, kinds in found} == {(key, value)}
    assert len(found) == N
    given = local.emitted("rows")
    assert {type(k).__name__ for k, _ in given} == {key}
    assert {type(v).__name__ for _, v in given} == {value}
    assert Counter(map(repr, ((k, v[2]) for k, v in found))) == Counter(map(repr, given))
    assert len(local.landed("out")) == N


@pytest.mark.parametrize(
    ("grouping", "kind"),
    [
        (by_key(), "ndarray"),
        (shuffle(), "ndarray"),
        (broadcast(), "ndarray"),
        (single(), "ndarray"),
        (partial_key(), "list"),
    ],
    ids=repr,
)
def test_whoever_takes_columns_gets_arrays_as_they_were_emitted(grouping, kind):
    local = small.run(through(Arrays(INTS, pa.array(range(N))), Kinds, grouping, 1 if grouping == single() else 2))
    found = [value for _, value in local.emitted("worker")]
    assert {value[0] for value in found} == {kind}
    assert {value[1] for value in found} == {"Int64Array"}
    assert sum(value[2] for value in found) == N * (2 if grouping == broadcast() else 1)


def test_a_grouping_of_ones_own_sees_plain_objects_and_its_rows_stay_arrays():
    class Odd(Grouping):
        def choose(self, key, value, sub_units):
            assert type(key) is int
            assert type(value) is float
            return key % sub_units

    local = small.run(through(Arrays(INTS, np.arange(N) * 0.5), Kinds, Odd(), 2))
    assert {value[:2] for _, value in local.emitted("worker")} == {("ndarray", "ndarray")}


def test_rows_come_to_columns_as_tuples():
    local = small.run(small.through([("a", 1), ("b", 2)], Kinds))
    assert local.emitted("worker") == [(0, ("tuple", "tuple", 2))]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("of", [np.asarray, pa.array, np.ndarray.tolist])
def test_state_is_kept_by_key_and_moves_with_it_while_arrays_flow(of, parallelism):
    keys, values = np.arange(20_000) % 97, np.arange(20_000) * 0.5
    local = LocalRuntime(
        through(Arrays(of(keys), of(values)), Sums, parallelism=parallelism), seed=parallelism, settings=FEW
    )
    for n, wanted in ((parallelism + 2, 1000), (1, 4000), (2, 8000)):
        while local.driver.phase != "ended" and len(local.emitted("rows")) < wanted:
            if not local.step():
                local.wait()
        local.scale("worker", n)
        local.wait_for_change("worker")
    local.run_until_drained()
    assert dict(local.emitted("worker")) == {k: float(values[keys == k].sum()) for k in range(97)}
    report = local.report()
    assert len(local.emitted("worker")) == 97
    assert len(report.changes) == 3
    assert report.units["worker"].tuples_in == 20_000
    assert report.roots.replayed == 0


def test_function_steps_see_plain_objects():
    seen = set()
    t = Topology("steps")
    numbers = t.spout("numbers", Arrays(INTS, np.arange(N)))
    numbers.map(lambda v: seen.add(type(v)) or v + 1).filter(lambda v: v % 2 == 0).sink("even", Collect())
    numbers.key_by(lambda v: str(v)).bolt("worker", Kinds, by_key()).sink("keyed", Collect())
    local = small.run(t)
    assert seen == {int}
    assert sorted(row.value for row in local.landed("even")) == [v + 1 for v in range(N) if v % 2]
    assert {value[:2] for _, value in local.emitted("worker")} == {("tuple", "tuple")}


def test_rows_and_arrays_of_one_call_keep_their_order():
    class Mixed(BatchBolt):
        def process_batch(self, rows):
            self.emit_batch([("k", 0), ("k", 1)])
            self.emit_columns(np.array(["k", "k"]), np.array([2, 3]))
            self.emit_columns(pa.array(["k"]), [4])
            self.emit_columns(["k", "k"], (5, 6))
            self.emit_columns(np.array([], str), np.array([]))
            self.emit_columns(None, [7])
            self.emit_columns(["k"], np.array([8]), stream="beside")
            self.emit_batch([("k", 8)])

    class Seen(Bolt):
        def __init__(self):
            self.seen = []

        def process(self, key, value):
            self.seen.append(value)

        def finish(self):
            self.emit(self.key, self.seen)

    t = Topology("order")
    mixed = t.spout("rows", Items([("a", 1)])).bolt("mixed", Mixed, grouping=by_key(), streams=("beside",))
    mixed.bolt("seen", Seen, grouping=single()).sink("out", Collect())
    mixed["beside"].sink("beside", Collect())
    local = small.run(t)
    assert local.emitted("seen") == [(None, list(range(9)))]
    assert [value for _, value in local.emitted("mixed")] == list(range(9))
    assert [(row.key, row.value) for row in local.landed("beside")] == [("k", 8)]


def test_several_inputs_are_told_apart_in_columns_too():
    class Both(BatchBolt):
        def process_columns_stream(self, stream, keys, values):
            self.emit_columns([stream] * len(keys), values)

    t = Topology("both")
    left, right = t.spout("left", Arrays(INTS, np.arange(N))), t.spout("right", Items([(1, "r")]))
    t.bolt("both", Both, inputs={left: by_key(), right: by_key()}).sink("out", Collect())
    local = small.run(t)
    assert Counter(row.key for row in local.landed("out")) == {"left": N, "right": 1}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_ids_of_rows_out_of_columns_are_one_for_each(parallelism):
    class Wants(Collect):
        wants_id = True

    class Mixed(BatchBolt):
        def process_columns(self, keys, values):
            self.emit_columns(keys, values)
            self.emit_columns([0], [-1])
            self.emit_columns(keys, values)

        def finish(self):
            self.emit_columns(np.array([1, 2]), np.array([3, 4]))

    t = Topology("ids")
    numbers = t.spout("numbers", Arrays(INTS, np.arange(N)))
    mixed = numbers.bolt("mixed", Mixed, grouping=by_key(), parallelism=parallelism)
    mixed.bolt("plain", small.Echo, grouping=by_key(), parallelism=2).sink("out", Wants())
    local = small.run(t)
    rows = local.landed("out")
    assert len({row.id for row in rows}) == len(rows) > 2 * N
    assert Counter(row.value for row in rows if row.value > 4) == dict.fromkeys(range(5, N), 2)


# errors -------------------------------------------------------------------------------------------


class Once(BatchBolt):
    """Emits, then raises for what holds a 3."""

    def process_columns(self, keys, values):
        self.emit_batch([("before", 0)])
        self.emit_columns(keys, values)
        if 3 in list(values):
            raise ValueError("three")


def test_what_a_failed_try_emitted_is_forgotten_and_letters_hold_rows(caplog):
    settings = Settings(root_rows=2, root_array_rows=2)
    for policy, letters in [(skip(), 0), (dead_letter("x.jsonl"), 1)]:
        local = small.run(through(Arrays(np.arange(6), np.arange(6)), Once, on_error=policy), settings=settings)
        assert [value for key, value in local.emitted("worker") if key != "before"] == [0, 1, 4, 5]
        assert local.report().units["worker"].errors == 1
        assert len(local.dead_letters) == letters
    (letter,) = local.dead_letters
    assert letter["value"] == [(2, 2), (3, 3)]
    assert "ValueError: three" in letter["traceback"]
    assert "process_columns" in caplog.text
    with pytest.raises(TopologyFailed, match=r"unit 'worker', process_columns, key None: ValueError: three"):
        small.run(through(Arrays(np.arange(6), np.arange(6)), Once, on_error=fail(retries=1)))


def emits(*arguments, **named):
    class Emits(BatchBolt):
        def process_batch(self, rows):
            self.emit_columns(*arguments, **named)

    return small.through([("a", 1)], Emits)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.array([1.5]), [1]), r"keys: a NumPy array of dtype float64 cannot be keys"),
        ((["a"], np.array([object()])), r"values: a NumPy array of dtype object cannot travel: .*tolist"),
        ((["a"], np.zeros((1, 2))), r"values: a NumPy array of shape \(1, 2\) is no column"),
        ((np.array([1, 2]), np.array([1])), r"two lengths: 2 keys and 1 values"),
        ((["a", "b"], [1]), r"two lengths: 2 keys and 1 values"),
        (("a", [1]), r"keys: str is no column; pass a list"),
        ((["a"], {"b": 1}), r"values: dict is no column; use list\(values\)"),
        (([1.5], [1]), r"float cannot be a key"),
        (([1.5], np.array([1])), r"float cannot be a key"),
        ((["a"], [object()]), r"object cannot travel"),
        ((np.array(["a"]), [object()]), r"object cannot travel"),
        ((pa.record_batch({"a": [1]}), [1]), r"keys: a pyarrow RecordBatch cannot be keys"),
        ((["a"], pa.array([1], pa.duration("s"))), r"values: a pyarrow Array of duration\[s\] cannot travel"),
        ((["a"], [1], "late"), r"the stream 'late', which it does not declare"),
    ],
)  # fmt: skip
def test_bad_columns_are_refused_in_the_call_that_emits_them_naming_the_unit(arguments, said):
    with pytest.raises(TopologyFailed, match=rf"(?s)unit 'worker' emitted .*{said}.*self\.emit_columns\("):
        small.run(emits(*arguments))


def test_a_spouts_bad_columns_are_refused():
    with pytest.raises(TopologyFailed, match=r"unit 'rows' emitted columns: keys: .*float64 cannot be keys"):
        small.run(through(Arrays(np.array([1.5]), np.array([1])), Kinds))
    with pytest.raises(TopologyFailed, match=r"unit 'rows' emitted columns of two lengths: 1 keys and 2 values"):
        small.run(through(Arrays(np.array([1]), np.array([1, 2])), Kinds))


def test_a_key_that_is_missing_in_arrow_is_refused_where_keys_matter():
    keys = pa.array(["a", None])
    assert len(small.run(through(Arrays(keys, keys), Plain, shuffle())).emitted("worker")) == 2
    with pytest.raises(TopologyFailed, match=r"unit 'rows' emitted a tuple without a key"):
        small.run(through(Arrays(keys, keys), Plain, by_key(), 2))


class Changing(BatchBolt):
    def process_columns(self, keys, values):
        mine = np.array(values)
        self.emit_columns(keys, mine)
        mine += 1


class ChangingSpout(Spout):
    def __init__(self):
        self.buffer = np.zeros(3)

    def read(self, limit):
        self.buffer += 1
        return Columns(None, self.buffer)


@pytest.mark.parametrize(
    ("topology", "unit"),
    [(through(Arrays(INTS, np.arange(N)), Changing), "worker"), (through(ChangingSpout(), Kinds, shuffle()), "rows")],
    ids=["bolt", "spout"],
)
def test_an_array_that_is_changed_after_it_was_emitted_is_found(topology, unit):
    with pytest.raises(
        TopologyFailed, match=rf"unit '{unit}' changed an array of type ndarray after it had emitted it"
    ):
        small.run(topology, seconds=1)


def test_emits_out_of_place_are_refused():
    class Early(Kinds):
        def open(self, context):
            self.emit_columns([1], [1])

    with pytest.raises(TopologyFailed, match="emit_columns work in process_batch"):
        small.run(small.through([("a", 1)], Early))
    with pytest.raises(RuntimeError, match=r"Kinds\.emit_columns: this object is not part of a running topology"):
        Kinds().emit_columns([1], [1])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (np.int64(5), 1, r"a key in Keeps\.keyed cannot be moved or saved: numpy\.int64 cannot be a key.*\.item\(\)"),
        ("a", lambda: 1, r"the state of key 'a' in Keeps\.keyed .*a lambda cannot travel; write a function"),
        (
            "a",
            [iter("a")],
            r"the state of key 'a' in Keeps\.keyed .*str_.*iterator at value\[0\] cannot travel; keep the list",
        ),
    ],
)
def test_state_that_cannot_be_moved_is_found_with_the_first_batch(key, value, said):
    class Keeps(BatchBolt):
        def process_columns(self, keys, values):
            self.keyed[key] = value

    with pytest.raises(TopologyFailed, match=rf"unit 'worker': {said}"):
        small.run(small.through([("a", 1)], Keeps))


def test_what_a_unit_takes_is_looked_at_when_it_is_built():
    class Neither(BatchBolt):
        pass

    class Wrong(BatchBolt):
        def process_columns(self, rows):
            pass

    class Own(Kinds):
        emit_columns = None

    for bolt, said in [
        (Neither, r"Neither defines neither process_batch"),
        (Wrong, r"Wrong\.process_columns must take \(self, keys, values\)"),
        (Own, r"Own defines `emit_columns`, which the engine gives"),
    ]:
        with pytest.raises(TopologyError, match=said):
            small.through([], bolt)


def test_columns_are_as_many_as_their_values():
    assert len(Columns(None, np.arange(3))) == len(Columns(["a"] * 3, [1, 2, 3])) == 3
    assert not Columns([], [])
    assert repr(Columns(None, [1])) == "<Columns of 1 tuples>"
    assert issubclass(PayloadError, TypeError)


# sources, large roots, slow bolts, checkpoints -------------------------------------------------------


def test_roots_of_arrays_grow_beyond_those_of_rows():
    size = RootSize(1024, True)
    for _ in range(20):
        size.processed(0.001, size.rows, True)
    assert size.rows == 1024
    size.arrays(5000)
    for _ in range(20):
        size.processed(0.001, size.rows, True)
    assert size.rows == 5000


def test_a_slow_bolts_batches_are_cut_and_stay_arrays():
    class Slow(Kinds):
        def process_columns(self, keys, values):
            super().process_columns(keys, values)
            clock: Any = self.context.now
            clock.advance(0.001 * len(values))

    local = LocalRuntime(through(Arrays(INTS, np.arange(N)), Slow))
    local.run_until_drained()
    found = [value for _, value in local.emitted("worker")]
    assert {value[:2] for value in found} == {("ndarray", "ndarray")}
    assert max(value[2] for value in found) <= 32  # of the first turn; the others are shorter
    assert sum(value[2] for value in found) == N
