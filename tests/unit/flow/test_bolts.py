"""What is called when, and what happens when it raises."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from small_bolts import Named as Ids

from esault import (
    BatchBolt,
    Bolt,
    Grouping,
    Spout,
    Topology,
    TopologyFailed,
    broadcast,
    by_key,
    dead_letter,
    fail,
    shuffle,
    single,
    skip,
)  # fmt: skip
from esault.errors import SinkError
from esault.flow.operators.user_error import failure_text, is_transient
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime

_spec = importlib.util.spec_from_file_location("small", Path(__file__).with_name("small.py"))
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)
ROWS = [(f"k{i % 3}", i) for i in range(12)]


class Forever(Spout):
    """Rows at once, then nothing, without an end."""

    def __init__(self, rows):
        self.rows = rows

    def read(self, limit):
        rows, self.rows = self.rows, []
        return rows


class Odd(Bolt):
    tries = 0

    def process(self, key, value):
        self.emit(key, "before")
        if value % 2:
            type(self).tries += 1
            raise ValueError("odd")
        self.emit(key, value)


def test_a_failure_ends_the_run_with_unit_key_and_the_users_lines():
    with pytest.raises(TopologyFailed) as failed:
        small.run(small.through(ROWS, Odd))
    text = str(failed.value)
    assert "unit 'worker', process, key 'k1': ValueError: odd" in text
    assert 'raise ValueError("odd")' in text
    assert "operators.py" not in text


def test_what_a_failed_try_emitted_is_forgotten_and_the_rest_goes_on(caplog):
    local = small.run(small.through(ROWS, Odd, on_error=skip()))
    assert [v for _, v in local.emitted("worker")] == [x for _, v in ROWS if v % 2 == 0 for x in ("before", v)]
    assert local.report().units["worker"].errors == 6
    assert caplog.text.count("Traceback") == 1


def test_retries_repeat_the_one_tuple_in_place():
    Odd.tries = 0
    small.run(small.through([("a", 1)], Odd, on_error=skip(retries=3)))
    assert Odd.tries == 0  # the count is on the unit's own class, not on the user's

    class Third(Bolt):
        def __init__(self):
            self.tries = 0

        def process(self, key, value):
            self.tries += 1
            if self.tries < 3:
                raise ValueError
            self.emit(key, self.tries)

    assert small.run(small.through([("a", 1)], Third, on_error=fail(retries=2))).emitted("worker") == [("a", 3)]


def test_dead_letters_hold_tuple_and_traceback():
    local = small.run(small.through(ROWS, Odd, on_error=dead_letter("x.jsonl")))
    letters = local.dead_letters
    assert [(r["key"], r["value"]) for r in letters] == [(k, v) for k, v in ROWS if v % 2]
    assert all("ValueError: odd" in r["traceback"] for r in letters)
    assert local.report().units["worker"].dead_letters == 6


@pytest.mark.parametrize(("policy", "kept"), [(skip(), 0), (dead_letter("y.jsonl"), 1)])
def test_an_error_in_a_step_follows_the_steps_policy(policy, kept, caplog):
    t = Topology("steps")
    rows = t.spout("rows", Items([("a", 0), ("a", 5)]))
    rows.map(lambda v: 10 // v, on_error=policy).sink("out", Collect())
    local = small.run(t)
    assert [row.value for row in local.landed("out")] == [2]
    assert local.report().units["rows"].errors == 1
    assert len(local.dead_letters) == kept
    told = caplog.text
    assert told.count("ZeroDivisionError") == 2  # the line, and the traceback: not the first try's as well
    assert "During handling" not in told
    assert ("kept in memory" in told) == bool(kept)  # where the letters are, not the path they are named after


@pytest.mark.parametrize("hook", ["__init__", "open", "process", "tick", "finish"])
def test_sys_exit_in_a_hook_is_an_error_of_the_hook_and_ends_nothing_else(hook):
    def leaves(self, *arguments):
        sys.exit("enough")

    bolt = type("Leaves", (small.Echo,), {hook: leaves})
    with pytest.raises(TopologyFailed, match=rf"(?s)unit 'worker', {hook}, key 'a': SystemExit: enough.*in leaves"):
        small.run(small.through([("a", 1)], bolt, tick_every=0.001), seconds=1)


def test_sys_exit_in_close_is_told_and_harms_nobody(caplog):
    def leaves(self):
        sys.exit("enough")

    bolt = type("Leaves", (small.Echo,), {"close": leaves})
    assert small.run(small.through([("a", 1)], bolt)).landed("out")
    assert "unit 'worker', close, key 'a': SystemExit: enough" in caplog.text


def test_emit_with_too_little_is_said_of_emit():
    class Short(Bolt):
        def process(self, key, value):
            emit: Any = self.emit
            emit(key)

    with pytest.raises(TopologyFailed, match=r"Bolt\.emit\(\) missing 1 required positional argument: 'value'"):
        small.run(small.through([("a", 1)], Short))


def test_what_the_system_refused_is_said_once_and_what_code_raised_with_its_traceback():
    def raised(cause):
        try:
            raise SinkError("sink 'x': the disk is full") from cause
        except SinkError as error:
            return failure_text("u", error)

    try:
        raise SinkError("the disk is full") from OSError(28, "No space left on device")
    except SinkError as error:
        inner = error
    assert raised(OSError(28, "No space left on device")) == raised(inner) == "sink 'x': the disk is full"
    assert "ValueError: theirs" in raised(ValueError("theirs"))
    own = SinkError("its own cause")
    own.__cause__ = own
    assert failure_text("u", own) == "its own cause"
    assert not is_transient(own)
    assert is_transient(OSError(24, "Too many open files")), "the engine's own: another process may have what it takes"
    assert not is_transient(OSError(9, "Bad file descriptor"))


@pytest.mark.parametrize("hook", ["__init__", "open"])
def test_an_object_that_cannot_be_made_is_said_of_the_hook_that_raised(hook):
    class Closed(Bolt):
        def process(self, key, value):
            raise AssertionError("not reached")

    def broken(self, *_):
        raise ValueError("no database")

    setattr(Closed, hook, broken)
    with pytest.raises(TopologyFailed, match=rf"unit '\w+', {hook}, key 'a': ValueError: no database"):
        small.run(small.through([("a", 1)], Closed))


def test_a_refused_emit_ends_at_the_users_line():
    class Sends(Bolt):
        def process(self, key, value):
            self.emit(key, object())

    with pytest.raises(TopologyFailed) as failed:
        small.run(small.through([("a", 1)], Sends))
    assert "self.emit(key, object())" in str(failed.value)
    assert "emitter.py" not in str(failed.value)


def test_an_error_in_a_step_names_the_step():
    t = Topology("steps")
    t.spout("rows", Items([("a", 0)])).map(lambda v: 1 // v).sink("out", Collect())
    with pytest.raises(TopologyFailed, match=r"step 'rows.map'.*key 'a': ZeroDivisionError"):
        small.run(t)


class Unsure:
    """Neither true nor false, as an array of several is."""

    def __init__(self, value):
        self.value = value

    def __bool__(self):
        if self.value == 1:
            raise ValueError("the truth value is ambiguous")
        return bool(self.value)


@pytest.mark.parametrize("policy", [fail(), skip()], ids=["fail", "skip"])
def test_a_filter_whose_answer_is_neither_true_nor_false_names_the_step_and_the_key(policy):
    t = Topology("steps")
    rows = t.spout("rows", Items([("a", 0), ("b", 1), ("c", 2)]))
    rows.filter(Unsure, on_error=policy).sink("out", Collect())
    if policy == fail():
        with pytest.raises(
            TopologyFailed, match=r"step 'rows.filter' \(Unsure\), key 'b': ValueError: the truth value"
        ):
            small.run(t)
        return
    assert [(row.key, row.value) for row in small.run(t).landed("out")] == [("c", 2)]


def test_steps_do_what_they_say():
    t = Topology("steps")
    lines = t.spout("lines", Items([("f", "b a"), ("g", ""), ("h", "c a b")]))
    words = lines.flat_map(str.split).filter(lambda w: w != "c").map(str.upper)
    words.key_by(lambda w: w).reduce("count", lambda total, w: total + 1, initial=0).sink("out", Collect())
    local = small.run(t)
    assert sorted((r.key, r.value) for r in local.landed("out")) == [("A", 1), ("A", 2), ("B", 1), ("B", 2)]


class Life(Bolt):
    def __init__(self):
        self.seen = 0

    def process(self, key, value):
        self.seen += 1
        self.emit(key, ("process", self.seen))

    def tick(self, now):
        self.emit(self.key, ("tick", self.seen))

    def finish(self):
        self.emit(self.key, ("finish", self.seen))


def test_ticks_come_every_so_often_for_every_object():
    local = LocalRuntime(small.through([], Life, tick_every=10), spouts={})
    t = Topology("ticking")
    t.spout("rows", Forever([("a", 1), ("b", 1)])).bolt("worker", Life, grouping=by_key(), tick_every=10)
    local = LocalRuntime(t)
    local.run_for(35)
    ticks = [k for k, (what, _) in local.emitted("worker") if what == "tick"]
    assert sorted(ticks) == ["a"] * 3 + ["b"] * 3


def test_finish_comes_once_for_every_object_at_the_end_and_may_emit():
    local = small.run(small.through(ROWS, Life, parallelism=2))
    assert sorted(k for k, (what, _) in local.emitted("worker") if what == "finish") == ["k0", "k1", "k2"]
    assert len(local.landed("out")) == 15


def test_idle_objects_are_put_away_and_come_back_with_their_state():
    t = Topology("idle")
    t.spout("rows", Forever([("a", 1)])).bolt("worker", Life, grouping=by_key(), idle_after=10)
    local = LocalRuntime(t)
    local.run_for(25)
    (seat,) = list(local.driver.units["worker"].subs)
    elements = local._processes[seat].core.operator.elements
    assert len(elements) == 0
    assert elements.count == 1
    assert elements["a"].seen == 1


def test_expired_objects_finish_and_are_forgotten():
    t = Topology("expiry")
    t.spout("rows", Forever([("a", 1), ("b", 1)])).bolt("worker", Life, grouping=by_key(), expire_after=10)
    local = LocalRuntime(t)
    local.run_for(20)
    assert sorted(k for k, (what, _) in local.emitted("worker") if what == "finish") == ["a", "b"]


def test_several_inputs_and_a_stream_beside_the_main_one():
    class Match(Bolt):
        def __init__(self):
            self.left = None

        def process_stream(self, stream, key, value):
            if stream == "left":
                self.left = value
            elif self.left is None:
                self.emit(key, value, stream="unknown")
            else:
                self.emit(key, (self.left, value))

    t = Topology("match")
    left, right = t.spout("left", Items([("a", 1)])), t.spout("right", Forever([("a", 2), ("b", 3)]))
    out = t.bolt("match", Match, inputs={left: by_key(), right: by_key()}, streams=("unknown",))
    out.sink("known", Collect())
    out["unknown"].sink("unknown", Collect())
    local = LocalRuntime(t, seed=3)
    local.run_for(1)
    known = {(r.key, r.value) for r in local.landed("known")} | {(r.key, r.value) for r in local.landed("unknown")}
    assert known in ({("a", (1, 2)), ("b", 3)}, {("a", 2), ("b", 3)})
    assert ("b", 3) in {(r.key, r.value) for r in local.landed("unknown")}


class Joins(Bolt):
    """Emits nothing, one or two rows for a row."""

    def __init__(self):
        self.seen = []

    def process_stream(self, stream, key, value):
        if value == "bad":
            raise ValueError("no good")
        self.seen.append((stream, value))
        for number in range(len(self.seen) % 3):
            self.emit(key, (stream, value, number))


def joined(policy, rows):
    t = Topology("joins")
    left, right = t.spout("left", Items(rows)), t.spout("right", Items([(k, v + 100) for k, v in ROWS]))
    bolt = t.bolt("joins", Joins, inputs={left: by_key(), right: by_key()}, on_error=policy)
    bolt.sink("rows", Ids())
    return LocalRuntime(t, seed=1)


def test_rows_of_several_inputs_are_the_same_and_have_the_same_names_whatever_may_become_of_errors():
    landed = []
    for policy in (fail(), skip()):  # the second is gone about row by row
        local = joined(policy, ROWS)
        local.run_until_drained()
        landed.append([(r.id, r.key, r.value) for r in local.landed("rows")])
    assert landed[0] == landed[1] and len({row[0] for row in landed[0]}) == len(landed[0]) > 12


def test_an_error_of_one_of_several_inputs_names_unit_and_key():
    with pytest.raises(TopologyFailed, match=r"unit 'joins', process, key 'k7': ValueError: no good"):
        joined(fail(), [*ROWS, ("k7", "bad")]).run_until_drained()


def test_an_undeclared_stream_is_named_with_those_that_are_declared():
    class Wrong(Bolt):
        def process(self, key, value):
            self.emit(key, value, stream="late")

    with pytest.raises(TopologyFailed, match=r"unit 'worker' emitted to the stream 'late'.*declared: 'early'"):
        small.run(small.through(ROWS, Wrong, streams=("early",)))


@pytest.mark.parametrize("hook", ["__init__", "open"])
def test_emits_out_of_place_are_refused(hook):
    def emits(self, *_):
        self.emit("a", 1)

    kind = type("Early", (Bolt,), {hook: emits, "process": lambda self, key, value: None})
    with pytest.raises(TopologyFailed, match=f"emitted in {hook}"):
        small.run(small.through(ROWS, kind))


@pytest.mark.parametrize("streams", [(), ("other",)])
def test_what_the_object_of_a_later_key_does_wrong_is_told_as_that_of_the_first(streams):
    made = []

    class Late(Bolt):
        def __init__(self):
            made.append(self)
            if len(made) > 2:
                self.wrong()

        def wrong(self):
            raise NotImplementedError

        def process(self, key, value):
            pass

    rows = [(key, 1) for key in "abcdef"]

    Late.wrong = lambda self: self.emit("a", 1)
    with pytest.raises(TopologyFailed, match="emitted in __init__"):
        small.run(small.through(rows, Late, streams=streams))
    made.clear()
    Late.wrong = lambda self: 1 / 0
    with pytest.raises(TopologyFailed, match="unit 'worker', __init__, key '[c-f]': ZeroDivisionError"):
        small.run(small.through(rows, Late, streams=streams))


def test_the_objects_of_all_keys_are_opened_where_the_class_or_its_base_says_so():
    opened = []

    class Base(Bolt):
        def open(self, context):
            opened.append(self.key)

    class Opens(Base):
        def process(self, key, value):
            pass

    small.run(small.through([(key, 1) for key in "abcdef"], Opens))
    assert sorted(opened) == sorted("abcdef")


def test_state_that_cannot_be_saved_is_found_on_the_first_object():
    class Holds(Bolt):
        def __init__(self):
            self.lock = object()

        def process(self, key, value):
            pass

    with pytest.raises(
        TopologyFailed, match=r"unit 'worker': attribute 'lock' of Holds cannot be saved or moved: object cannot travel"
    ):
        small.run(small.through(ROWS, Holds))


def test_the_engine_keeps_out_of_the_objects_attributes():
    class Looks(Bolt):
        def process(self, key, value):
            self.emit(key, (dict(vars(self)), self.key, self.context.unit))

    assert small.run(small.through([("a", 1)], Looks)).emitted("worker") == [("a", ({}, "a", "worker"))]


def test_two_units_of_one_class_do_not_share_what_the_engine_adds():
    t = Topology("twins")
    rows = t.spout("rows", Items([("a", 1)]))
    rows.bolt("one", small.Echo, grouping=by_key()).bolt("two", small.Echo, grouping=by_key())
    local = small.run(t)
    assert local.emitted("one") == local.emitted("two") == [("a", 1)]
    assert "emit" not in vars(small.Echo)


class Where(Bolt):
    def process(self, key, value):
        self.emit(key, self.context.sub_unit)


def test_broadcast_goes_to_every_sub_unit():
    local = small.run(small.through([("a", 1), ("b", 2)], Where, grouping=broadcast(), parallelism=3))
    assert len(local.emitted("worker")) == 6


def test_single_is_one_object():
    local = small.run(small.through(ROWS, Life, grouping=single()))
    assert [n for _, (what, n) in local.emitted("worker") if what == "process"] == list(range(1, 13))


def test_shuffle_uses_all_sub_units():
    local = LocalRuntime(
        small.through([(None, i) for i in range(2000)], Where, grouping=shuffle(), parallelism=3), parallelism={}
    )
    local.run_until_drained()
    assert len({where for _, where in local.emitted("worker")}) == 3


def test_a_grouping_of_ones_own_chooses_row_by_row():
    class ByParity(Grouping):
        def choose(self, key, value, sub_units):
            return value % sub_units

    local = small.run(small.through(ROWS, Where, grouping=ByParity(), parallelism=2))
    assert len(local.emitted("worker")) == 12
    assert len({where for _, where in local.emitted("worker")}) == 2


def test_a_grouping_that_chooses_nonsense_is_named():
    class Beyond(Grouping):
        def choose(self, key, value, sub_units):
            return 7

    with pytest.raises(TopologyFailed, match=r"Beyond\(\).choose gave 7 for key 'k0'"):
        small.run(small.through(ROWS, Where, grouping=Beyond()))


def test_a_batch_bolt_sees_batches_and_keeps_state_by_key():
    class Totals(BatchBolt):
        def process_batch(self, rows):
            for key, value in rows:
                self.keyed[key] = self.keyed.get(key, 0) + value
            self.emit_batch([(key, self.keyed[key]) for key, _ in rows])

        def finish(self):
            self.emit_batch(list(self.keyed.items()))

    local = LocalRuntime(small.through([(f"k{i % 5}", 1) for i in range(500)], Totals, parallelism=2))
    while not local.emitted("worker"):
        local.step()
    local.scale("worker", 3)
    local.run_until_drained()
    assert sorted(local.emitted("worker")[-5:]) == [(f"k{i}", 100) for i in range(5)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_row_ids_are_the_source_row_and_the_path_of_emits_whatever_the_parallelism(parallelism):
    class Wants(Collect):
        wants_id = True

    class Twice(Bolt):
        def process(self, key, value):
            self.emit(key, value)
            self.emit(key, value)

    t = Topology("ids")
    rows = t.spout("rows", Items([("a b", 1), ("c", 2)])).flat_map(lambda v: [v, v]).filter(lambda v: v == 1)
    rows.bolt("twice", Twice, grouping=by_key(), parallelism=parallelism).map(lambda v: v).sink("out", Wants())
    local = small.run(t)
    ids = sorted(r.id.split(":")[1] for r in local.landed("out"))
    assert ids == ["0.0.0", "0.0.1", "0.1.0", "0.1.1"]


class Own(Bolt):
    """Takes a name that is the engine's."""

    def __init__(self, name="", late=""):
        self.late = late
        if name:
            setattr(self, name, [])

    def process(self, key, value):
        if self.late:
            setattr(self, self.late, [value])
        self.emit(key, value)


class Mean(Bolt):
    """Keeps the last three values under a name that is the engine's in windows."""

    def __init__(self, size=3):
        self.window = deque(maxlen=size)

    def process(self, key, value):
        self.window.append(value)
        self.emit(key, list(self.window))


class Late(Bolt):
    """The same, set with the first tuple; until then there is none."""

    def process(self, key, value):
        self.window = [*getattr(self, "window", ()), value][-3:]
        self.emit(key, list(self.window))


KINDS = [Mean, functools.partial(Mean, 3), lambda: Mean(3), Late, lambda: Late()]


@pytest.mark.parametrize("bolt", KINDS)
def test_outside_windows_self_window_is_state_as_any_other_attribute(bolt):
    rows = [(f"k{i % 40}", i) for i in range(400)]
    local = LocalRuntime(small.through(rows, bolt), settings=Settings(delivery="eo", checkpoint_every=0.01))
    local.run_until(lambda: local.emitted("worker"))
    local.scale("worker", 3)
    local.wait_for_change("worker")
    local.kill(local.sub_units("worker")[0])
    local.run_until_drained()
    found = {}
    for row in local.landed("out"):
        found.setdefault(row.key, []).append(row.value)
    assert found == {f"k{k}": [list(range(k, last + 1, 40))[-3:] for last in range(k, 400, 40)] for k in range(40)}


@pytest.mark.parametrize("grouping", [shuffle, single])
@pytest.mark.parametrize("bolt", KINDS)
def test_so_it_is_where_one_object_takes_all(bolt, grouping):
    report = small.run(small.through([("a", 1), ("a", 2)], bolt, grouping=grouping()))
    assert [row.value for row in report.landed("out")] == [[1], [1, 2]]


def test_a_key_that_process_puts_in_place_of_the_engines_is_refused():
    t = small.through([("a", 1), ("b", 2)], functools.partial(Own, late="key"))
    with pytest.raises(TopologyFailed, match=r"Own sets self\.key, which is the engine's; use another name"):
        small.run(t)


class Says(Bolt):
    """Says of its state what it is told."""

    def __init__(self, state):
        self.state = state

    def __getstate__(self):
        return self.state() if callable(self.state) else self.state

    def process(self, key, value):
        self.emit(key, value)


def fails():
    raise ValueError("no state")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            (1, 2),
            r"unit 'worker': Says\.__getstate__ returns a tuple, and nothing puts that back: return a dict of attributes",
        ),
        (fails, r"unit 'worker': ValueError: no state"),
    ],
    ids=["tuple", "raises"],
)
def test_a_getstate_that_cannot_be_used_is_named(state, message):
    with pytest.raises(TopologyFailed, match=message):
        small.run(small.through([("a", 1)], functools.partial(Says, state)))


def test_a_getstate_that_returns_none_keeps_nothing():
    local = small.run(small.through([("a", 1), ("a", 2)], functools.partial(Says, None)))
    assert local.emitted("worker") == [("a", 1), ("a", 2)]
