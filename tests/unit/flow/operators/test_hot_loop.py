"""Bolts whose `process` is written out once there are many tuples: what comes out, what is said of errors, and where it is called all the same."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology, TopologyFailed, by_key, dead_letter, fail, shuffle, skip
from esault.flow.operators import hot_loop
from esault.flow.operators.hot_loop import HotLoop
from esault.messages.settings import Settings
from esault.sinks import Collect, JsonLines
from esault.sources import Items
from esault.testing import LocalRuntime

SETTINGS = Settings(checked_emits=0, watch_values=False, reload_state=False, root_rows=50, chaining=True)


class Pairs(Bolt):
    def process(self, key, value):
        self.emit(key, value)
        if value % 2:
            self.emit(key, value / (value - 501))


class Doubles(Bolt):
    def process(self, key, value):
        self.emit(key, 2 * value)


class Inverse(Bolt):
    def process(self, key, value):
        self.emit(key, 1 / (value - 501))


class Sums(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Cleared(Sums):
    """Begins anew with every third tuple, once there were many."""

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)
        if value % 3 == 0 and value > 600:
            self.clear_state()


class Needs(Bolt):
    def __init__(self):
        raise LookupError("no such thing")

    def process(self, key, value):
        self.emit(key, value)


class Fails(Bolt):
    """Fails behind an emit, some tuples each time and some the first time."""

    def __init__(self):
        self.tries = 0

    def process(self, key, value):
        self.tries += 1
        self.emit(key, (value, self.tries))
        if value % 10 == 3 or (value % 10 == 6 and value not in TRIED):
            TRIED.add(value)
            raise ValueError(f"{value} is refused")
        self.emit(key, "well")


class Picky(Fails):
    """Has no object for some keys."""

    def __init__(self):
        super().__init__()
        MADE.append(0)
        if len(MADE) % 3 == 0:
            raise LookupError("no such thing")


class Told(Bolt):
    """Tells in which order it is made and called."""

    def __init__(self):
        TOLD.append("made")

    def process(self, key, value):
        TOLD.append((key, value))
        self.emit(key, value)


TOLD: list = []
TRIED: set = set()
MADE: list = []


class Ids(Collect):
    wants_id = True


@pytest.fixture
def batches(monkeypatch):
    """Sizes of the batches that ran written out."""
    monkeypatch.setattr(hot_loop, "HOT", 100)
    monkeypatch.setattr(hot_loop, "MANY", 3)
    seen: list = []
    ready = HotLoop.ready

    def noted(self, cls, count, with_ids):
        found = ready(self, cls, count, with_ids)
        if found:
            seen.append(count)
        return found

    monkeypatch.setattr(HotLoop, "ready", noted)
    return seen


def run(rows, sink=Collect, bolt=Sums, first=Pairs, chaining=True):
    t = Topology("hot")
    pairs = t.spout("rows", Items(rows)).bolt("pairs", first, grouping=shuffle())
    pairs.bolt("sums", bolt, grouping=by_key()).sink("out", sink())
    local = LocalRuntime(t, settings=replace(SETTINGS, chaining=chaining))
    local.run_until_drained()
    return local


@pytest.mark.parametrize("chaining", [False, True])
@pytest.mark.parametrize("sink", [Collect, Ids])
@pytest.mark.parametrize("first", [Pairs, Inverse])
def test_what_comes_out_is_what_calls_put_out(batches, monkeypatch, first, sink, chaining):
    rows = [(f"k{i % 7}", i) for i in range(500)]
    written = run(rows, sink, first=first, chaining=chaining)
    assert sum(batches) > 700
    batches.clear()
    monkeypatch.setattr(hot_loop, "HOT", 10**9)
    called = run(rows, sink, first=first, chaining=chaining)
    assert not batches
    assert written.emitted("sums") == called.emitted("sums")
    assert written.emitted("pairs") == called.emitted("pairs")
    units = [{name: unit.tuples_in for name, unit in local.report().units.items()} for local in (written, called)]
    assert units[0] == units[1]
    if sink is Ids:
        ids = [sorted((row.id, row.key, row.value) for row in local.landed("out")) for local in (written, called)]
        assert ids[0] == ids[1]


@pytest.mark.parametrize("sink", [Collect, Ids])
def test_an_object_whose_state_was_cleared_is_not_called_again(batches, sink):
    values = list(range(1, 500))
    local = run([(f"k{i % 7}", i) for i in values], sink, bolt=Cleared, first=Doubles)
    assert sum(batches) > 700
    totals, want = [0] * 7, []
    for i in values:
        totals[i % 7] += 2 * i
        want.append((f"k{i % 7}", totals[i % 7]))
        if i % 3 == 0 and i > 300:
            totals[i % 7] = 0
    assert local.emitted("sums") == want


KEYS = st.sampled_from([0, 1, True, False, 2, "1", "a", (1, 2), (True, 2), ("a",), b"a"]) | st.integers(0, 40)


@given(st.lists(st.tuples(KEYS, st.integers(-5, 5)), min_size=1, max_size=200), st.integers(1, 60), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_keys_that_are_new_in_a_batch_and_such_as_look_alike_have_the_objects_that_calls_give_them(rows, size, many):
    def put_out(hot):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hot_loop, "HOT", hot)
            patch.setattr(hot_loop, "MANY", many)
            ran = []
            patch.setattr(HotLoop, "_tuples", lambda self, *rows: ran.append(rows) or tuples(self, *rows))
            t = Topology("hot")
            t.spout("rows", Items(rows)).bolt("sums", Sums, grouping=by_key()).sink("out", Collect())
            local = LocalRuntime(t, settings=replace(SETTINGS, root_rows=size))
            local.run_until_drained()
            assert not (ran and hot)  # where Hypothesis traces lines, calls are made anyway
            return local.emitted("sums")

    tuples = HotLoop._tuples
    written, called = put_out(0), put_out(10**9)
    assert written == called
    assert [type(key) for key, _ in written] == [type(key) for key, _ in called]


def test_objects_are_made_in_the_order_of_their_first_rows_and_behind_the_rows_before(batches):
    TOLD.clear()
    t = Topology("hot")
    rows = [(i // 2, i) for i in range(400)]
    t.spout("rows", Items(rows)).bolt("told", Told, grouping=by_key()).sink("out", Collect())
    LocalRuntime(t, settings=SETTINGS).run_until_drained()
    assert sum(batches) > 200
    found = TOLD.index((100, 200))
    assert TOLD[found - 1 : found + 5] == ["made", (100, 200), (100, 201), "made", (101, 202), (101, 203)]


@pytest.mark.parametrize("chaining", [False, True])
@pytest.mark.parametrize("first", [Pairs, Inverse])
def test_an_error_names_the_key_and_the_users_line(batches, first, chaining):
    rows = [(f"k{i}", i) for i in range(600)]
    with pytest.raises(TopologyFailed) as failed:
        run(rows, first=first, chaining=chaining)
    said = str(failed.value)
    assert "unit 'pairs', process, key 'k501': ZeroDivisionError" in said
    assert "(value - 501))" in said
    assert "esault/flow" not in said
    assert sum(batches) > 400


def test_an_object_that_cannot_be_made_is_said_as_that(batches):
    made: list = []

    class Some(Needs):
        def __init__(self):
            made.append(0)
            if len(made) > 300:
                super().__init__()

    with pytest.raises(TopologyFailed) as failed:
        run([(f"k{i}", 2 * i) for i in range(400)], bolt=Some)
    said = str(failed.value)
    assert "unit 'sums', __init__, key 'k" in said
    assert 'raise LookupError("no such thing")' in said
    assert "in process" not in said
    assert batches


def test_what_follows_lines_or_calls_sees_them(batches):
    calls: list = []
    before = sys.getprofile()

    def noted(frame, event, argument):
        if event == "call" and frame.f_code is Sums.process.__code__:
            calls.append(0)

    sys.setprofile(noted)
    try:
        run([("k", 2 * i) for i in range(300)])
    finally:
        sys.setprofile(before)
    assert len(calls) == 300
    assert not batches


SURVIVING = [skip(), skip(retries=1), dead_letter("letters")]
CASES = [
    *((policy, grouping, Fails) for policy in (*SURVIVING, fail(retries=5)) for grouping in (shuffle(), by_key())),
    *((policy, by_key(), Picky) for policy in SURVIVING),
]


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize(("policy", "grouping", "bolt"), CASES)
def test_errors_that_are_survived_take_back_what_their_tuple_has_emitted(
    batches, monkeypatch, policy, grouping, bolt, ids
):
    rows = [(f"k{i % 40}", 10 * i if policy.kind == "fail" and i % 10 == 3 else i) for i in range(500)]

    def outcome(hot):
        TRIED.clear()
        MADE.clear()
        monkeypatch.setattr(hot_loop, "HOT", hot)
        t = Topology("hot")
        out = t.spout("rows", Items(rows)).bolt("worker", bolt, grouping=grouping, on_error=policy, chain=False)
        out.sink("out", Ids() if ids else Collect())
        local = LocalRuntime(t, settings=SETTINGS)
        local.run_until_drained()
        unit = local.report().units["worker"]
        letters = [{**each, "traceback": "", "time": 0} for each in local.dead_letters]
        landed = [(row.id, row.key, row.value) for row in local.landed("out")]
        return landed, unit.tuples_in, unit.errors, unit.dead_letters, letters

    called = outcome(10**9)
    assert not batches
    assert outcome(100) == called
    assert sum(batches) >= 350
    assert called[2] > 0 or policy.kind == "fail"


@pytest.mark.parametrize("hot", [100, 10**9])
def test_an_error_under_a_policy_shows_the_users_line_once(batches, monkeypatch, caplog, hot):
    monkeypatch.setattr(hot_loop, "HOT", hot)
    t = Topology("hot")
    rows = [("k", 0)] * 200 + [("k", 3)]
    out = t.spout("rows", Items(rows)).bolt("worker", Fails, grouping=shuffle(), on_error=skip(retries=2))
    out.sink("out", Collect())
    LocalRuntime(t, settings=SETTINGS).run_until_drained()
    assert (sum(batches) >= 100) == (hot == 100)
    assert "unit 'worker', process, key 'k': ValueError: 3 is refused" in caplog.text
    assert caplog.text.count('raise ValueError(f"{value} is refused")') == 1
    assert "esault/flow" not in caplog.text


WRITTEN = threading.Event()
BEGIN = threading.Event()


class Begins(Sums):
    """Lets the loop be written out once it has been called for a while."""

    def process(self, key, value):
        self.total += value
        if value == 500:
            BEGIN.set()
        self.emit(key, self.total)


def rows_around():
    """Yield rows until the loop must be there, and some more."""
    for n in range(1000):
        yield "k", n
    WRITTEN.wait(60)
    for n in range(1000, 20_000):
        yield "k", n


def test_calls_go_on_while_a_thread_writes_the_loop_out(monkeypatch, tmp_path):
    WRITTEN.clear()
    BEGIN.clear()
    write, run, ran = hot_loop._write, HotLoop.run, []

    def written(*arguments):
        assert BEGIN.wait(60)  # the data loop goes on meanwhile, or this would be waited for
        made = write(*arguments)
        WRITTEN.set()
        return made

    monkeypatch.setattr(hot_loop, "HOT", 100)
    monkeypatch.setattr(hot_loop, "_write", written)
    monkeypatch.setattr(HotLoop, "run", lambda self, *arguments: (ran.append(0), run(self, *arguments))[1])
    t = Topology("beside")
    t.spout("rows", Items(rows_around)).bolt("sums", Begins, by_key()).sink("out", JsonLines(tmp_path / "rows"))
    LocalRuntime(t, settings=SETTINGS, real=True).run_until_drained()
    assert [json.loads(line)["value"] for line in (tmp_path / "rows").read_text().splitlines()] == list(
        itertools.accumulate(range(20_000))
    )
    assert ran
