"""Bolts that wait: what overlaps, what comes in order, what happens when it goes wrong."""

from __future__ import annotations

import asyncio
import importlib.util
from collections import Counter
from contextvars import ContextVar
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import (
    Bolt,
    EndOfStream,
    Spout,
    Topology,
    TopologyFailed,
    backoff,
    by_key,
    dead_letter,
    fail,
    shuffle,
    single,
    skip,
)
from esault.flow.send.outputs import Outputs
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime

_spec = importlib.util.spec_from_file_location("small", Path(__file__).with_name("small.py"))
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)


class Sleep(Bolt):
    """Sleeps for so many milliseconds."""

    async def process(self, key, value):
        await asyncio.sleep(value / 1000)
        self.emit(key, value)


class Timed(Bolt):
    """Sleeps for so many seconds, and says from when to when."""

    async def process(self, key, value):
        begun = self.context.now()
        await asyncio.sleep(value)
        self.emit(key, (begun, self.context.now()))


def lasted(rows, **options):
    """Seconds, by the run's clock, from the first call's beginning to the last one's end."""
    local = small.run(small.through(rows, Timed, **options))
    times = [value for _, value in local.emitted("worker")]
    assert len(times) == len(rows)
    return max(end for _, end in times) - min(begun for begun, _ in times)


def test_calls_of_several_keys_wait_side_by_side_and_those_of_one_key_do_not():
    rows = [(f"k{i}", 1.0) for i in range(20)]
    assert lasted(rows) == pytest.approx(1, abs=0.01)
    assert lasted(rows, concurrency=2) == pytest.approx(10, abs=0.01)
    assert lasted(rows, concurrency=1) == pytest.approx(20, abs=0.01)
    assert lasted([("k", 1.0)] * 20) == pytest.approx(20, abs=0.01)


def core_of(local):
    """The only sub-unit of the bolt, once it is there."""
    while not (made := [number for number in local.sub_units("worker") if number in local._processes]):
        local.step()
    return local._processes[made[0]].core


def test_calls_of_one_key_follow_one_another_within_a_turn():
    class Seen(Bolt):
        async def process(self, key, value):
            before, _ = last.get(), last.set(value)
            await asyncio.sleep(0)
            self.emit(key, (value, before))

    last: ContextVar = ContextVar("last", default=None)
    rows = [("k", i) for i in range(3000)]
    local = LocalRuntime(small.through(rows, Seen))
    took: list = []
    core = core_of(local)
    take = core.processing._take_results
    core.processing._take_results = lambda now: took.append(len(core.operator.ended)) or take(now)
    local.run_until_drained()
    # In order, and what one has set in its context is not seen by the next.
    assert local.emitted("worker") == [("k", (i, None)) for i in range(3000)]
    assert max(took) > 10
    assert sum(map(bool, took)) < 1000


def test_nothing_follows_while_what_was_emitted_cannot_be_sent(monkeypatch):
    rows = [("k", i) for i in range(100)]
    local = LocalRuntime(small.through(rows, Sleep))
    core = core_of(local)
    while not core.calls.open:
        local.step()
    waiting = core.calls.waiting
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "blocked", property(lambda self: True))
        for _ in range(50):
            local.clock.advance(0.2)
            core.turn()
        assert core.calls.open == 0
        assert core.calls.waiting == waiting > 90
    local.run_until_drained()
    assert local.emitted("worker") == rows


def test_what_calls_that_are_open_have_taken_is_told_apart_from_what_ended_ones_took():
    rows = [(f"k{i}", 1000) for i in range(10)] + [(f"k{i}", 2000) for i in range(10, 16)]
    local = LocalRuntime(small.through(rows, Sleep, concurrency=20))
    core = core_of(local)
    seen = []
    while core.metrics.tuples_in < len(rows):
        if not local.step():
            local.clock.advance(0.05)
        counters = core.metrics.counters()
        seen.append(counters)
        # An ended call took a part of the twenty for its time; so the mean of those that are over is right at all times.
        tens, sixes = min(counters.processed, 10), max(0, counters.processed - 10)
        assert counters.busy - counters.open_busy == pytest.approx((tens + 2 * sixes) / 20, abs=0.05)
    assert max(each.open_busy for each in seen) > 0.4
    assert core.metrics.counters().open_busy == 0
    assert core.metrics.busy == pytest.approx(22 / 20, abs=0.05)
    local.run_until_drained()


def test_without_a_key_nothing_is_in_order_and_with_one_it_is():
    rows = [(None, 1 - i / 100) for i in range(20)]
    assert lasted(rows, grouping=shuffle()) == pytest.approx(1, abs=0.01)
    assert lasted([("k", v) for _, v in rows], grouping=shuffle()) == pytest.approx(sum(v for _, v in rows), abs=0.01)
    assert lasted([(f"k{v}", v) for _, v in rows], grouping=single()) == pytest.approx(1, abs=0.01)


def test_other_keys_overtake_one_that_waits():
    rows = [("slow", 1000), *[("slow", 1)] * 300, *((f"k{i}", 1) for i in range(300))]
    local = small.run(small.through(rows, Sleep, concurrency=8))
    keys = [key for key, _ in local.emitted("worker")]
    assert keys.index("slow") == 300


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)), max_size=60),
    st.integers(1, 5),
    st.integers(0, 1 << 20),
)
def test_each_keys_results_are_in_the_order_of_its_rows(rows, concurrency, seed):
    numbered = [(key, (i, wait)) for i, (key, wait) in enumerate(rows)]

    class Echo(Bolt):
        async def process(self, key, value):
            await asyncio.sleep(value[1] / 1000)
            self.emit(key, value)
            self.emit(key, value, stream="again")

    t = Topology("x")
    out = t.spout("rows", Items(numbered)).bolt("worker", Echo, by_key(), streams=("again",), concurrency=concurrency)
    out.sink("out", Collect())
    out["again"].sink("again", Collect())
    local = LocalRuntime(t, seed=seed, settings=Settings(root_rows=4))
    local.run_until_drained()
    for sink in ("out", "again"):
        for key in "abcd":
            got = [row.value for row in local.landed(sink) if row.key == key]
            assert got == [value for k, value in numbered if k == key]
    assert local.report().roots.open == 0


def test_what_a_call_starts_emits_for_it():
    class Gather(Bolt):
        async def part(self, key, n):
            await asyncio.sleep(n / 100)
            self.emit(key, n)

        async def process(self, key, value):
            await asyncio.gather(*(self.part(key, n) for n in range(value)))

    local = small.run(small.through([("a", 3), ("b", 2)], Gather))
    assert Counter(local.emitted("worker")) == Counter([("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)])


def test_a_tuple_that_is_acked_emits_no_more():
    said = []
    left = []

    class Leaves(Bolt):
        async def later(self, key):
            await asyncio.sleep(0.01)
            try:
                self.emit(key, 1)
            except RuntimeError as error:
                said.append(str(error))

        async def process(self, key, value):
            if key == "a":
                left.append(asyncio.create_task(self.later(key)))
            else:
                await asyncio.sleep(1)

    small.run(small.through([("a", 1), ("b", 1)], Leaves))
    assert "Leaves.emit: the call of process for key 'a' has returned" in said[0]


class Odd(Bolt):
    async def process(self, key, value):
        self.emit(key, "before")
        await asyncio.sleep(0.001)
        if value % 2:
            raise ValueError("odd")
        self.emit(key, value)


ROWS = [(f"k{i % 3}", i) for i in range(12)]


def test_a_failure_ends_the_run_with_unit_key_and_the_users_lines():
    with pytest.raises(TopologyFailed) as failed:
        small.run(small.through(ROWS, Odd))
    text = str(failed.value)
    assert "unit 'worker', process, key 'k1': ValueError: odd" in text
    assert 'raise ValueError("odd")' in text
    assert "async_operator.py" not in text


def test_what_a_failed_try_emitted_is_forgotten_and_the_rest_goes_on(caplog):
    local = small.run(small.through(ROWS, Odd, on_error=skip()))
    want = Counter([(k, x) for k, v in ROWS if v % 2 == 0 for x in ("before", v)])
    assert Counter(local.emitted("worker")) == want
    assert local.report().units["worker"].errors == 6
    assert caplog.text.count("Traceback") == 1


def test_retries_and_dead_letters_hold_for_each_call():
    class Third(Bolt):
        def __init__(self):
            self.tries = 0

        async def process(self, key, value):
            self.tries += 1
            await asyncio.sleep(0.001)
            if self.tries < 3:
                raise ValueError
            self.emit(key, self.tries)

    assert small.run(small.through([("a", 1)], Third, on_error=fail(retries=2))).emitted("worker") == [("a", 3)]
    local = small.run(small.through(ROWS, Odd, on_error=dead_letter("x.jsonl")))
    assert sorted((r["key"], r["value"]) for r in local.dead_letters) == sorted((k, v) for k, v in ROWS if v % 2)
    assert all("ValueError: odd" in r["traceback"] for r in local.dead_letters)


def test_a_timeout_of_the_users_is_an_error_like_any_other():
    class Impatient(Bolt):
        async def process(self, key, value):
            await asyncio.wait_for(asyncio.sleep(value), 0.05)
            self.emit(key, value)

    local = small.run(small.through([("a", 0.01), ("b", 10), ("c", 0.02)], Impatient, on_error=skip()))
    assert Counter(local.emitted("worker")) == Counter([("a", 0.01), ("c", 0.02)])
    assert local.now() - 1_700_000_000 < 1


def test_an_emitted_value_that_cannot_travel_is_refused_in_the_call_that_emits_it():
    class Wrong(Bolt):
        async def process(self, key, value):
            self.emit(key, object())

    with pytest.raises(
        TopologyFailed, match=r"key 'a': PayloadError: unit 'worker' emitted a tuple with key 'a' whose"
    ):
        small.run(small.through([("a", 1)], Wrong))


class Service(Bolt):
    """All hooks wait."""

    def __init__(self):
        self.n = 0
        self.opened = False

    async def open(self, context):
        await asyncio.sleep(0.01)
        self.opened = True
        self.hear(("open", self.key))

    async def process(self, key, value):
        assert self.opened
        await asyncio.sleep(0.01)
        self.n += 1

    async def tick(self, now):
        n = self.n
        await asyncio.sleep(0.003)
        assert self.n == n or self.key is None, "a tick beside a call of its key"
        self.emit(self.key, "tick")

    async def finish(self):
        await asyncio.sleep(0.01)
        self.emit(self.key, self.n)

    async def close(self):
        await asyncio.sleep(0.01)
        self.hear(("close", self.key))

    def __getstate__(self):
        return {"n": self.n}

    def hear(self, what):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("grouping", "objects"), [(by_key(), ["a", "b", "c"]), (shuffle(), [None]), (single(), [None])]
)
def test_every_hook_may_wait(grouping, objects):
    said = []
    service = type("Service", (Service,), {"hear": staticmethod(said.append)})
    rows = [("abc"[i % 3], i) for i in range(60)]
    local = small.run(small.through(rows, service, grouping=grouping, tick_every=0.05, concurrency=4))
    ends = [(key, value) for key, value in local.emitted("worker") if value != "tick"]
    assert sum(n for _, n in ends) == 60
    assert [key for key, _ in ends] == objects or sorted(key for key, _ in ends) == objects
    assert Counter(said) == Counter([(hook, key) for key in objects for hook in ("open", "close")])
    assert ("a" if len(objects) == 3 else None, "tick") in local.emitted("worker")


def test_what_expires_is_finished_when_its_call_is_over_and_made_anew():
    class Slow(Bolt):
        def __init__(self):
            self.n = 0

        async def process(self, key, value):
            await asyncio.sleep(value)
            self.n += 1
            self.emit(key, self.n)

        async def finish(self):
            await asyncio.sleep(0.01)
            self.emit(self.key, "finished")

    rows = [("a", 1.0), ("a", 0.1), ("b", 0.1)]
    local = small.run(small.through(rows, Slow, expire_after=0.2))
    assert [value for key, value in local.emitted("worker") if key == "a"] == [1, 2, "finished"]


def test_where_open_fails_the_run_ends_with_its_words():
    class Shut(Bolt):
        async def open(self, context):
            raise ConnectionError("refused")

        async def process(self, key, value):
            pass

    with pytest.raises(TopologyFailed, match="unit 'worker', open, key None: ConnectionError: refused"):
        small.run(small.through([("a", 1)], Shut, grouping=shuffle(), on_error=skip()))

    class AndFinishes(Shut):
        def finish(self):
            pass

    # Its tuple, and at the end its finish: the object is kept, since it may have come with state.
    for bolt, errors in ((Shut, 1), (AndFinishes, 2)):
        local = small.run(small.through([("a", 1)], bolt, on_error=skip()))
        assert local.report().units["worker"].errors == errors


class Endless(Spout):
    def __init__(self, keys):
        self.keys, self.next = keys, 0

    def read(self, limit):
        self.next += limit
        return [(f"k{i % self.keys}", 1000) for i in range(self.next - limit, self.next)]


@pytest.mark.parametrize("keys", [1, 1000])
def test_reading_stops_where_all_calls_wait(keys):
    class Stuck(Bolt):
        async def process(self, key, value):
            await asyncio.sleep(10_000)

    t = Topology("x")
    t.spout("rows", Endless(keys)).bolt("worker", Stuck, by_key(), concurrency=4).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(max_pending=8, root_rows=64))
    local.run_for(5)
    report = local.report()
    assert report.units["worker"].tuples_in == 0
    assert report.units["rows"].tuples_out <= 2000


def test_control_and_changes_do_not_wait_for_calls_of_other_keys():
    class Some(Spout):
        """One tuple that takes long, then many that do not."""

        def __init__(self):
            self.n = 0

        def read(self, limit):
            if self.n >= 2000:
                raise EndOfStream
            rows = [(f"k{i % 50}", 500 if i == 0 else 0) for i in range(self.n, self.n + 20)]
            self.n += 20
            return rows

    t = Topology("x")
    t.spout("rows", Some()).bolt("worker", Sleep, by_key(), concurrency=8).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(root_rows=32))
    local.run_for(0.001)
    (first,) = local.sub_units("worker")
    core = local._processes[first].core
    while not core.calls.busy("k0"):
        assert local.step()
    local.run_for(0.01)
    assert core.calls.busy("k0")
    local.split("worker", first)
    local.wait_for_change("worker")
    # If the key that waits moves, the change ends with its call; else long before.
    assert local.report().changes[0].total_ms < (100 if "k0" in core.operator.elements else 600)
    local.run_until_drained()
    assert len(local.emitted("worker")) == 2000
    keys = [key for key, _ in local.emitted("worker")]
    assert keys.count("k0") == 40


def test_the_spouts_window_lets_all_calls_be_taken_up():
    """More than the window's roots hold: each answers after a second, and all sub-units have all that they may have."""
    rows = [(f"k{i}", 1.0) for i in range(5000)]
    t = Topology("x")
    out = t.spout("rows", Items(rows)).bolt("worker", Timed, by_key(), parallelism=2, concurrency=1250)
    out.sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    times = [value for _, value in local.emitted("worker")]
    assert max(end for _, end in times) - min(begun for begun, _ in times) < 3.5


def test_row_ids_name_the_row_and_the_ordinal():
    class Twice(Bolt):
        async def process(self, key, value):
            await asyncio.sleep(value / 1000)
            self.emit(key, value)
            self.emit(key, value, stream="more")
            self.emit(key, value)

        async def finish(self):
            self.emit(self.key, 0)

    class Ids(Collect):
        wants_id = True

    t = Topology("x")
    out = t.spout("rows", Items([("a", 3), ("b", 1)])).bolt("worker", Twice, by_key(), streams=("more",))
    out.sink("out", Ids())
    out["more"].sink("more", Ids())
    local = LocalRuntime(t)
    local.run_until_drained()
    rows = sorted((row.key, row.value, row.id.split(":", 1)[1]) for row in local.landed("out") if row.value)
    assert rows == [("a", 3, "0.0"), ("a", 3, "0.1"), ("b", 1, "1.0"), ("b", 1, "1.1")]
    assert sorted(row.id.split(":", 1)[1] for row in local.landed("more")) == ["0.more-0", "1.more-0"]
    ids = [row.id for row in local.landed("out")]
    assert len(ids) == len(set(ids)) == 6


def test_a_throttle_counts_calls_that_begin():
    rows = [(f"k{i % 100}", 1) for i in range(3000)]
    t = Topology("x")
    t.spout("rows", Items(rows)).bolt("worker", Sleep, by_key()).sink("out", Collect())
    local = LocalRuntime(t, settings=Settings(root_rows=64))
    local.throttle("worker", 200.0, 5.0)
    local.run_for(3.0)
    assert 500 <= len(local.emitted("worker")) <= 700
    local.run_until_drained()
    assert len(local.emitted("worker")) == 3000


@pytest.mark.parametrize("finishes", [False, True])
def test_what_is_idle_is_put_away_and_what_waits_is_not(finishes):
    said = []

    class Rests(Bolt):
        async def open(self, context):
            said.append(("open", self.key, context.now()))

        async def process(self, key, value):
            await asyncio.sleep(value)
            self.emit(key, value)

        async def close(self):
            said.append(("close", self.key, self.context.now()))

    if finishes:
        Rests.finish = lambda self: None
    local = small.run(small.through([("a", 0.01), ("b", 3.0)], Rests, idle_after=0.5))
    assert Counter(local.emitted("worker")) == Counter([("a", 0.01), ("b", 3.0)])
    times: dict = {}
    for hook, key, now in said:
        times.setdefault((hook, key), now)
    assert times["close", "a"] < times["open", "a"] + 2
    assert times["close", "b"] >= times["open", "b"] + 3
    # It is there again for its finish if it has one, as any that was put away.
    lives = 1 + finishes
    assert Counter((hook, key) for hook, key, _ in said) == Counter(
        {("open", "a"): lives, ("close", "a"): lives, ("open", "b"): 1, ("close", "b"): 1}
    )


class Gathers(Bolt):
    """Does two things side by side, one of which fails at first, while the other emits."""

    def __init__(self):
        self.tries = 0

    async def process(self, key, value):
        self.tries += 1
        await asyncio.gather(self.fails(), self.answers(key, value))

    async def fails(self):
        await asyncio.sleep(0.001)
        if self.tries < 3:
            raise ConnectionError("away")

    async def answers(self, key, value):
        await asyncio.sleep(0.05)
        self.emit(key, value)


@pytest.mark.parametrize("policy", [skip(retries=2), fail(retries=backoff(2, initial=0.2))])
def test_what_a_failed_try_has_started_emits_nothing_any_more(policy):
    local = small.run(small.through([("a", 1), ("b", 2)], Gathers, on_error=policy))
    assert sorted(local.emitted("worker")) == [("a", 1), ("b", 2)]


FED: list = []


class Fed(Spout):
    """Gives what was put into `FED`, and then waits."""

    def __init__(self):
        self.given = 0

    def read(self, limit):
        rows = FED[self.given : self.given + limit]
        self.given += len(rows)
        return rows


class Adds(Bolt):
    """Changes what it keeps before it waits and behind that."""

    def __init__(self):
        self.n = 0

    async def process(self, key, value):
        self.n += 1
        await asyncio.sleep(value)
        self.n += 10
        self.emit(key, self.n)


@pytest.mark.parametrize("options", [{"expire_after": 4.0}, {"idle_after": 4.0}])
def test_an_object_whose_call_began_while_idle_ones_were_looked_for_stays(options, monkeypatch):
    monkeypatch.setattr("esault.flow.worker.bolt_unit.SWEEP_TURN", -1.0)  # 64 objects in a turn
    FED[:] = [(i, 0.0) for i in range(2, 8002)]
    t = Topology("idle")
    t.spout("rows", Fed()).bolt("worker", Adds, grouping=by_key(), **options)
    local = LocalRuntime(t, settings=Settings(reload_state=False, watch_values=False))
    local.run_until(lambda: len(local.emitted("worker")) == 8000)
    core = core_of(local)
    operator, last = core.operator, 2 if "expire_after" in options else 8001  # of those that are looked at
    sweep, number = (operator._expiry, 5) if "expire_after" in options else (operator._idle, 2)
    local.run_until(lambda: core._sweeping is not None and sweep._sweep == number)
    FED.append((last, 3.0))
    for _ in range(40):
        local.step()
        local.clock.advance(0.002)
    assert core._sweeping is not None and core.calls.open
    local.run_for(3.5)
    FED.append((last, 0.0))
    local.run_for(0.5)
    assert [value for key, value in local.emitted("worker") if key == last] == [11, 22, 33]
