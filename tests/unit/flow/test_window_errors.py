"""Windows whose code raises: a tuple is in all its windows or in none, and a window closes once."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology, dead_letter, fail, skip
from esault.errors import TopologyFailed
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.payload.codec import Codec
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.context import Context
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

SURVIVING = [skip(), skip(retries=2), dead_letter("dead.jsonl"), dead_letter("dead.jsonl", retries=2)]
#: of each kind; the sliding one has four windows for each tuple
KINDS = [TumblingWindow(20), SlidingWindow(20, 5), SessionWindow(6), CountWindow(4)]


def at(value):
    return value["at"]


def flaky(raises, opening=None, closing=None):
    """A bolt that raises when `raises(hook, key, start, n, call)` says so, and how often each (hook, key, start, n) was called."""
    calls = Counter()

    class Flaky(Bolt):
        def __init__(self):
            self.rows = ()

        def open(self, context):
            if opening is not None:
                opening(self.window)

        def process(self, key, value):
            self.rows = (*self.rows, value["n"])  # before it raises: such a try leaves traces
            self.emit(key, ("row", value["n"], self.window.start))
            self.call("process", value["n"])

        def finish(self):
            self.emit(self.key, ("window", *self.window, self.rows))
            self.call("finish", None)

        def close(self):
            if closing is not None:
                closing(self.window)

        def call(self, hook, n):
            of = (hook, self.key, self.window.start, n)
            calls[of] += 1
            if raises(*of, calls[of]):
                raise ValueError(f"{hook} {n}")

    return Flaky, calls


def run(rows, window, bolt, policy):
    """(windows that came out with what was in them, the run)."""
    t = Topology("t")
    options = {} if isinstance(window, CountWindow) else {"time": at, "lateness": 100}
    made = t.spout("rows", Items(rows)).window("w", bolt, window, on_error=policy, **options)
    made.sink("out", Collect())
    if options:
        made["late"].sink("late", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    return sorted(row.value[1:] for row in local.landed("out") if row.value[0] == "window"), local


def rows_of(*times):
    return [("k", {"at": time, "n": n}) for n, time in enumerate(times)]


ROWS = rows_of(20, 21, 22, 23)


@pytest.mark.parametrize("policy", [fail(retries=2), *SURVIVING[1::2]], ids=str)
@pytest.mark.parametrize("window", KINDS, ids=repr)
def test_a_tuple_that_is_tried_again_is_once_in_each_of_its_windows(window, policy):
    """Of a sliding window, it fails in the last one that it comes to, and then in the one before."""
    starts = [5, 10, 15, 20] if window == SlidingWindow(20, 5) else [0 if isinstance(window, CountWindow) else 20]
    bolt, _ = flaky(lambda hook, key, start, n, call: n == 0 and start == starts[-min(len(starts), call)] and call < 3)
    out, local = run(ROWS, window, bolt, policy)
    assert [(start, rows) for start, _, rows in out] == [(start, (0, 1, 2, 3)) for start in starts]
    # What a failed try emitted is forgotten, also by windows in which it did not fail.
    emitted = Counter(row.value[1:] for row in local.landed("out") if row.value[0] == "row")
    assert emitted == {(n, start): 1 for n in range(4) for start in starts}
    assert local.report().units["w"].errors == 0


@pytest.mark.parametrize("policy", SURVIVING, ids=str)
@pytest.mark.parametrize("fails_at", [5, 10, 15, 20])
def test_a_tuple_that_fails_in_one_sliding_window_is_in_none(fails_at, policy):
    bolt, _ = flaky(lambda hook, key, start, n, call: n == 2 and start == fails_at)
    out, local = run(ROWS, SlidingWindow(20, 5), bolt, policy)
    assert out == [(start, start + 20, (0, 1, 3)) for start in (5, 10, 15, 20)]
    report = local.report().units["w"]
    assert (report.errors, report.late) == (1, 0)
    assert [(row["hook"], row["value"]["n"]) for row in local.dead_letters] == (
        [("process", 2)] if policy.kind == "dead_letter" else []
    )


@pytest.mark.parametrize("policy", SURVIVING, ids=str)
@pytest.mark.parametrize("window", KINDS, ids=repr)
def test_a_tuple_that_fails_opens_no_window(window, policy):
    """These would be the first ones of their windows."""
    bolt, _ = flaky(lambda hook, key, start, n, call: hook == "process" and n in (0, 5))
    out, local = run(rows_of(0, 100, 101, 102, 103, 200), window, bolt, policy)
    assert {rows for _, _, rows in out} == {(1, 2, 3, 4)}
    assert local.report().units["w"].errors == 2


@pytest.mark.parametrize("policy", SURVIVING, ids=str)
def test_a_tuple_that_fails_makes_no_session_longer(policy):
    bolt, _ = flaky(lambda hook, key, start, n, call: n in (0, 2, 4))
    out, _ = run(rows_of(0, 3, 7, 11, 12), SessionWindow(6), bolt, policy)
    assert [(start, end) for start, end, _ in out] == [(3, 9), (11, 17)]
    assert [rows[0] for _, _, rows in out] == [1, 3]


@pytest.mark.parametrize("window", KINDS, ids=repr)
def test_an_object_that_cannot_be_opened_is_the_fault_of_its_tuple_and_no_window(window):
    def opening(of):
        if 0 < of.start <= 20:
            raise ValueError("closed")

    bolt, _ = flaky(lambda *of: False, opening)
    rows = rows_of(*range(20, 40), *range(100, 110))
    out, local = run(rows, window, bolt, skip())
    assert not any(0 < start <= 20 for start, _, _ in out)
    # One that is not in the session that would begin with it begins none, so that the next one does.
    failed = {SessionWindow(6): range(1), CountWindow(4): range(4, 30)}.get(window, range(20))
    assert {n for _, _, numbers in out for n in numbers} == set(range(30)) - set(failed)
    assert local.report().units["w"].errors == len(failed)


@pytest.mark.parametrize("window", KINDS, ids=repr)
@pytest.mark.parametrize("policy", SURVIVING, ids=str)
def test_a_window_whose_finish_fails_closes_once(window, policy):
    """It is the error of `finish`; the tuples, the last one too, have been taken."""
    bolt, calls = flaky(lambda hook, key, start, n, call: hook == "finish" and start in (0, 100, 8))
    rows = rows_of(*range(8), 100, 101, 200, 202)
    out, local = run(rows, window, bolt, policy)
    starts = {start for start, _, _ in out}
    assert not starts & {0, 100, 8}
    wrong = [(hook, start) for (hook, _, start, _) in calls if hook == "finish" and start in (0, 100, 8)]
    assert len(wrong) == local.report().units["w"].errors == (2 if len(wrong) == 2 else 1) > 0
    assert all(calls[hook, "k", start, None] == 1 + policy.retries for hook, start in wrong)
    assert all(count == 1 for (hook, *_), count in calls.items() if hook == "process")
    if isinstance(window, CountWindow):
        assert out == [(4, 8, (4, 5, 6, 7))]
    assert {row["hook"] for row in local.dead_letters} == ({"finish"} if policy.kind == "dead_letter" else set())


def test_a_window_whose_finish_goes_well_at_the_second_try_is_whole():
    for window in KINDS:
        bolt, _ = flaky(lambda hook, key, start, n, call: hook == "finish" and call < 3)
        out, local = run(ROWS, window, bolt, skip(retries=2))
        assert {rows for _, _, rows in out} == {(0, 1, 2, 3)}
        assert local.report().units["w"].errors == 0


@pytest.mark.parametrize("window", KINDS, ids=repr)
@pytest.mark.parametrize("policy", [fail(), fail(retries=2)], ids=str)
def test_a_failing_finish_is_named_as_such(window, policy):
    bolt, _ = flaky(lambda hook, key, start, n, call: hook == "finish")
    with pytest.raises(TopologyFailed, match=r"^unit 'w', finish, key 'k': ValueError: finish None\n") as failed:
        run(ROWS, window, bolt, policy)
    assert str(failed.value).count("Traceback") == 1


def test_late_tuples_are_told_of_once_however_often_others_are_tried():
    feed = [("k", {"at": time, "n": n}) for n, time in enumerate([10, 50, 4, 51, 52])]
    bolt, _ = flaky(lambda hook, key, start, n, call: n in (3, 4) and call < 3)
    made = Made(SlidingWindow(20, 5), bolt, skip(retries=2))
    made.operator.run(0, ["k", "k"], [value for _, value in feed[:2]], None)
    made.operator.advance(50)
    made.operator.run(0, ["k", "k", "k"], [value for _, value in feed[2:]], None)
    assert made.operator.late == 1
    assert made.emitter.outs["late"].values == [feed[2][1]]


def test_where_a_window_cannot_be_put_back_the_run_ends_and_says_why():
    opened = Counter()

    def opening(of):
        opened[of] += 1
        if opened[of] > 1:
            raise RuntimeError("no second time")

    bolt, _ = flaky(lambda hook, key, start, n, call: n == 1 and start == 20, opening)
    with pytest.raises(TopologyFailed, match=r"^unit 'w', open, key 'k': RuntimeError: no second time\n") as failed:
        run(ROWS, SlidingWindow(20, 5), bolt, skip())
    assert "a tuple had failed, and its windows were to be as they were before it" in str(failed.value)


def test_objects_that_are_put_back_are_closed_and_opened_like_those_that_move():
    there, most = Counter(), Counter()

    def opening(of):
        there[of] += 1
        most[of] = max(there[of], most[of])

    bolt, _ = flaky(lambda hook, key, start, n, call: n == 1 and start == 20, opening, lambda of: there.subtract([of]))
    run(ROWS, SlidingWindow(20, 5), bolt, skip())
    assert len(most) == 4
    assert set(most.values()) == {1}
    assert set(there.values()) == {0}


# whatever happens, beside a model -------------------------------------------------------------------


class Letters:
    def __init__(self):
        self.records = []

    def __str__(self):
        return "memory"

    def put(self, record):
        self.records.append(record)

    def sync(self):
        pass


class Made:
    """An operator with all that it needs, and what came out of it."""

    def __init__(self, window, bolt, policy):
        t = Topology("t")
        options = {} if isinstance(window, CountWindow) else {"time": at}
        t.spout("s", Items([])).window("w", bolt, window, on_error=policy, **options).sink("out", Collect())
        self.plan = t.plan().units["w"]
        self.letters = Letters()
        self.out = []
        self.late = []
        self.before = Counter()
        self.begin()

    def begin(self):
        self.emitter = Emitter("w", self.plan.streams, 0, False, Codec())
        now = 1.0e9
        context = Context(unit="w", now=lambda: now)
        self.operator: Any = operator(OperatorParameters(self.plan, context, self.emitter, Codec(), self.letters, now))

    def take(self):
        for stream, keys, values, _ in self.emitter.pop_emitted(False):
            (self.late if stream else self.out).extend(zip(keys, values))

    def move(self):
        """All to another one, as when a unit changes or a checkpoint is gone back to."""
        self.counted(self.operator)
        old = self.operator.state
        states = [(old.key_of(name) if name is not None else None, old.peek(name)) for name in old.saved_names()]
        self.begin()
        for key, state in states:
            if state is not None:
                self.operator.state.install_state(key, state)

    def counted(self, of):
        self.before["errors"] += of.errors
        self.before["late"] += of.late

    def close(self, most):
        while most and self.operator.close_some(1, 1, None):
            most -= 1

    def end(self):
        for _ in self.operator.finishing():
            pass
        self.take()
        self.counted(self.operator)


class Model:
    """What must come out: windows are lists, and before each try of a tuple there is a copy of them."""

    def __init__(self, window, raises, policy):
        self.window, self.raises, self.policy = window, raises, policy
        self.calls = Counter()
        self.out, self.late, self.letters = [], [], []
        self.level = float("-inf")
        #: (key, number or None) -> [start, end, numbers]
        self.open = {}
        self.counts = Counter()
        self.accepted = {}

    def _raises(self, hook, key, start, n):
        of = (hook, key, start, n)
        self.calls[of] += 1
        return self.raises(*of, self.calls[of])

    def _failed(self, hook, key, n):
        if self.policy.kind == "fail":
            raise UserError(hook)
        self.letters.append((hook, key, n))

    def finish(self, key, start, end, numbers):
        for _ in range(1 + self.policy.retries):
            if not self._raises("finish", key, start, None):
                self.out.append((key, ("window", start, end, tuple(numbers))))
                return
        self._failed("finish", key, None)

    def give(self, key, n, bounds):
        """Into these windows, (name, start, end), the first one first; whether it went well."""
        several = isinstance(self.window, SlidingWindow) and self.window.size > self.window.every
        several = several or (isinstance(self.window, CountWindow) and self.window.size > self.window.step)
        there = [name for name, *_ in bounds if (key, name) in self.open]
        for _ in range(1 + self.policy.retries):
            copy = {name: list(self.open[key, name][2]) for name in there}
            emitted = []
            for name, start, end in bounds:
                of = self.open.setdefault((key, name), [start, end, []])
                of[2].append(n)
                emitted.append((key, ("row", n, start)))
                if self._raises("process", key, start, n):
                    break
            else:
                self.out += emitted
                return True
            for name, *_ in bounds:
                if name not in there:
                    self.open.pop((key, name), None)
                elif several:
                    self.open[key, name][2][:] = copy[name]
        self._failed("process", key, n)
        return False

    def row(self, key, value):
        if isinstance(self.window, CountWindow):
            size, step, count = self.window.size, self.window.step, self.counts[key]
            ends = range(count - count % step + step, count + size + 1, step)
            if self.give(key, value["n"], [(end, max(0, end - size), end) for end in ends]):
                self.counts[key] += 1
                if not self.counts[key] % step:
                    self.finish(key, *self.open.pop((key, self.counts[key])))
        elif isinstance(self.window, SessionWindow):
            at, rows = value["at"], self.accepted.setdefault(key, [])
            session = self.open.get((key, None))
            starts = [time for time, _ in rows] + ([session[0]] if session is not None else [])
            # behind the watermark, and not part of what is open there, by itself or through others that touch
            if at < self.level and at + self.window.gap < min([self.level, *starts]):
                self.late.append((key, value))
            else:
                rows.append((at, value["n"]))
        else:
            bounds = [(index, *self.window.window(index)) for index in self.window.indices(value["at"])]
            bounds = [each for each in bounds if each[2] > self.level]
            if bounds:
                self.give(key, value["n"], bounds)
            else:
                self.late.append((key, value))

    def rows(self, rows):
        self.settle({key for key, _ in rows})
        for key, value in rows:
            self.row(key, value)

    def advance(self, level):
        self.level = max(self.level, level)
        self.settle(list(self.accepted))

    def settle(self, keys):
        """Sessions: rows that the watermark has passed, in the order of their times, and then ends that it has."""
        for key in keys:
            rows = self.accepted.get(key, [])
            passed = sorted(row for row in rows if row[0] < self.level)
            rows[:] = [row for row in rows if row[0] >= self.level]
            for time, n in passed:
                session = self.open.get((key, None))
                if session is not None and time > session[1]:
                    self.finish(key, *self.open.pop((key, None)))
                    session = None
                start, end = (time, time) if session is None else (min(session[0], time), session[1])
                end = max(end, time + self.window.gap)
                before = session and session[:2]
                if session is not None:
                    session[:2] = start, end
                if not self.give(key, n, [(None, start, end)]) and session is not None:
                    session[:2] = before
            session = self.open.get((key, None))
            if session is not None and session[1] < self.level and isinstance(self.window, SessionWindow):
                self.finish(key, *self.open.pop((key, None)))

    def end(self):
        self.advance(float("inf"))
        for (key, name), window in self.open.items():
            count, step = self.counts[key], self.window.step if isinstance(self.window, CountWindow) else 0
            if not step or (count % step and name == count - count % step + step):
                self.finish(key, *window)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.lists(st.tuples(st.sampled_from("ab"), st.integers(-8, 8)), max_size=8)),
        st.tuples(st.just("watermark"), st.sampled_from([0, 1, 2, 5, 10]), st.sampled_from([0, 0, 1, 100])),
        st.tuples(st.just("move")),
    ),
    max_size=14,
)
windows = st.sampled_from(
    [
        TumblingWindow(10),
        TumblingWindow(2.5),
        SlidingWindow(10, 5),
        SlidingWindow(10, 4),
        SlidingWindow(3.5, 0.5),
        SessionWindow(3),
        SessionWindow(0.5),
        CountWindow(1),
        CountWindow(3),
        CountWindow(3, 1),
        CountWindow(5, 2),
        TumblingWindow(10, offset=3),
        SlidingWindow(10, 5, offset=-2.5),
    ]
)
policies = st.one_of(
    st.builds(skip, st.integers(0, 2)),
    st.builds(lambda retries: dead_letter("dead.jsonl", retries), st.integers(0, 2)),
    st.builds(fail, st.integers(0, 3)),
)


def follow(made, plan):
    """The steps; rows come around a time that goes on with the watermark, which those behind may hold up."""
    now, n = 0, 0
    for step, *of in plan:
        if step == "rows":
            rows = [(key, {"at": now + behind, "n": n + i}) for i, (key, behind) in enumerate(of[0])]
            n += len(rows)
            yield rows
            made.operator.run(0, [key for key, _ in rows], [value for _, value in rows], None)
            made.take()
        elif step == "move":
            made.move()
        elif made.plan.window.timed:
            now += of[0]
            yield now
            made.operator.advance(now)
            made.close(of[1])
            made.take()
    made.end()


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@example(SlidingWindow(10, 5), [("rows", [])], fail(), 0, 0.0)  # of no rows none is the earliest
@given(windows, steps, policies, st.integers(0, 1 << 30), st.sampled_from([0.0, 0.1, 0.3]))
def test_whatever_raises_windows_hold_what_a_model_says(window, plan, policy, seed, rate):
    def raises(*of):
        return random.Random(f"{seed} {of}").random() < rate

    (bolt, calls), model = flaky(raises), Model(window, raises, policy)
    made = Made(window, bolt, policy)
    heard, failed = [], False
    try:
        for said in follow(made, plan):
            heard.append(said)
    except UserError:
        assert policy.kind == "fail"
        failed = True
    try:
        for said in heard:
            if isinstance(said, int):
                model.advance(said)
            else:
                model.rows(said)
        model.end()
    except UserError:
        assert failed
        return
    assert not failed
    assert sorted(made.out) == sorted(model.out)
    assert made.late == model.late
    assert made.before == Counter(errors=len(model.letters), late=len(model.late))
    if policy.kind == "dead_letter":
        told = [(r["hook"], r["key"], r["value"] and r["value"]["n"]) for r in made.letters.records]
        assert Counter(told) == Counter(model.letters)
    assert calls == model.calls
