"""`finish` and `close` cost nothing where a bolt has none, however many keys there are; where it has them each object hears of its end once."""

from __future__ import annotations

import functools
import time
from collections import deque

import pytest

from esault import Bolt, Topology, by_key, partial_key
from esault.event_loop import SteppedLoop
from esault.flow.operators.async_operator import AsyncOperator
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.calls import Calls
from esault.flow.operators.elements import Elements
from esault.flow.operators.factory import operator
from esault.flow.operators.operator import Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.watermark.timers import Timers
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.sources import Items
from esault.topology.context import Context
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

KEYS = [f"k{i}" for i in range(20)]
STATE = Codec().pack({"total": 1})
said: list[tuple[str, object]] = []


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1


class Opens(Count):
    def open(self, context):
        said.append(("open", self.key))


class Finishes(Opens):
    def finish(self):
        said.append(("finish", self.key))


class Closes(Opens):
    def close(self):
        said.append(("close", self.key))


class Both(Finishes, Closes):
    pass


class AsyncCount(Count):
    async def process(self, key, value):
        self.total += 1


class AsyncFinishes(AsyncCount, Finishes):
    pass


class AsyncCloses(AsyncCount, Closes):
    pass


def made(bolt, window=None, grouping=None, **options):
    said.clear()
    t = Topology("t")
    rows = t.spout("rows", Items([("a", 1)]))
    if window is None:
        rows.bolt("count", bolt, grouping or by_key(), **options)
    else:
        timed = {} if isinstance(window, CountWindow) else {"time": float, "lateness": 0}
        rows.window("count", bolt, window, **timed)
    plan, codec = t.plan().units["count"], Codec()
    emits = emitter(plan, Settings(checked_emits=0), codec)
    found = operator(OperatorParameters(plan, Context(unit="count", sub_unit=1), emits, codec, None, 0.0))
    if plan.concurrency:
        assert isinstance(found, AsyncOperator)
        found.attach(Calls(plan.concurrency), SteppedLoop(time.monotonic))
    return found


def heard(hook):
    return sorted(key for what, key in said if what == hook)


@pytest.fixture
def counted(monkeypatch):
    """How often something was called for an object, and how often all were walked through."""
    calls = {"hooks": 0, "walks": 0}
    outside, live = Operator._outside_process, Elements.live

    def called(*arguments):
        calls["hooks"] += 1
        return outside(*arguments)

    def walked(elements):
        calls["walks"] += 1
        return live(elements)

    monkeypatch.setattr(Operator, "_outside_process", called)
    monkeypatch.setattr(Elements, "live", walked)
    return calls


def of_partial(bolt):
    return functools.partial(bolt)


def of_function(bolt):
    return lambda: bolt()


FACTORIES = [lambda bolt: bolt, of_partial, of_function]


def fill(found, put_away):
    """Half of the keys are here, half have been put away; or all."""
    if type(found).__name__.startswith("Async") or put_away:
        for key in KEYS:
            found.state.install_state(key, STATE)
    else:
        found.run(0, KEYS[:10], [1] * 10, None)
        for key in KEYS[10:]:
            found.state.install_state(key, STATE)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("put_away", [False, True])
@pytest.mark.parametrize("bolt", [Opens, AsyncCount, Closes])
def test_at_the_end_nothing_is_made_or_called_for_a_finish_that_is_not_there(bolt, put_away, factory, counted):
    found = made(factory(bolt))
    fill(found, put_away)
    before = found.elements.made
    assert list(found.finishing()) == []
    assert found.elements.made <= before + (before == 0)  # one object speaks for all
    assert counted == {"hooks": 0, "walks": 0}
    found.close()
    assert heard("close") == (heard("open") if bolt is Closes else [])
    assert counted["walks"] == (bolt is Closes)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("put_away", [False, True])
@pytest.mark.parametrize("bolt", [Finishes, Both, AsyncFinishes])
def test_at_the_end_each_object_finishes_and_closes_once_where_it_has_them(bolt, put_away, factory):
    found = made(factory(bolt))
    fill(found, put_away)
    assert len(list(found.finishing())) == len(KEYS)
    assert heard("finish") == sorted(KEYS)
    found.close()
    assert heard("close") == (sorted(KEYS) if bolt is Both else [])


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("bolt", [Opens, Closes, Finishes, Both, AsyncCount, AsyncFinishes, AsyncCloses])
def test_what_expires_hears_what_it_has_hooks_for_and_is_gone(bolt, factory, counted):
    found = made(factory(bolt), expire_after=60)
    fill(found, put_away=False)
    opened = heard("open")
    found.expire(found.state.names())
    assert found.state.names() == []
    finishes = hasattr(bolt, "finish") and bolt.finish is not Bolt.finish
    assert heard("finish") == (sorted(KEYS) if finishes else [])
    # What was put away was closed then; it is made again only to be finished.
    if finishes:
        assert heard("open") == sorted(KEYS)
    elif opened:
        assert heard("open") == opened
    assert heard("close") == (heard("open") if bolt in (Closes, Both, AsyncCloses) else [])
    assert counted["hooks"] == (len(KEYS) if finishes else 0)


@pytest.mark.parametrize("bolt", [Opens, Finishes, Closes])
def test_both_halves_of_a_partial_key_are_told(bolt):
    found = made(bolt, grouping=partial_key())
    found.run(0, [("a", "0"), ("a", "1")], [1, 1], None)
    deque(found.finishing(), 0)
    found.close()
    assert heard("finish") == (["a", "a"] if bolt is Finishes else [])
    assert heard("close") == (["a", "a"] if bolt is Closes else [])


WINDOWS = [TumblingWindow(10), SlidingWindow(10, 5), SessionWindow(5), CountWindow(3)]


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("bolt", [Opens, Closes, Finishes, Both])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_windows_close_and_are_gone_whether_or_not_they_say_anything(bolt, window, factory, at_the_end, counted):
    found = made(factory(bolt), window)
    found.run(0, KEYS * 2, [1.0] * 2 * len(KEYS), None)
    if isinstance(window, CountWindow):
        at_the_end = True
    if at_the_end:
        deque(found.finishing(), 0)
    else:
        found.advance(1000.0)
        while found.close_some(1, 1, None):
            pass
    found.close()
    of_each = 2 if type(window) is SlidingWindow else 1
    assert len(heard("open")) == of_each * len(KEYS)
    assert heard("finish") == (heard("open") if bolt in (Finishes, Both) else [])
    assert heard("close") == (heard("open") if bolt in (Closes, Both) else [])
    if not isinstance(window, CountWindow):
        assert found.elements.count == 0
    if bolt is Opens and not isinstance(window, SessionWindow):  # whose rows are processed when they close
        assert counted == {"hooks": 0, "walks": 0}


def test_windows_that_came_from_elsewhere_end_too():
    for bolt in (Opens, Finishes):
        sender = made(bolt, TumblingWindow(10))
        sender.run(0, KEYS, [1.0] * len(KEYS), None)
        found = made(of_function(bolt), TumblingWindow(10))
        for name in sender.state.names():
            found.state.install_state(sender.state.key_of(name), sender.state.remove_state(name))
        deque(found.finishing(), 0)
        assert heard("finish") == (sorted(KEYS) if bolt is Finishes else [])
        assert found.elements.count == 0


def test_rows_of_a_session_that_wait_are_processed_at_the_end():
    found = made(Opens, SessionWindow(5))
    found.run(0, KEYS, [1.0] * len(KEYS), None)
    assert heard("open") == []
    deque(found.finishing(), 0)
    assert heard("open") == sorted(KEYS)


def test_what_is_due_at_one_time_takes_no_longer_each_the_more_there_is():
    """Taking from the front of a dict does: a window with 300 000 keys took 40 s to close."""

    def seconds(n):
        timers = Timers()
        for i in range(n):
            timers.add(1.0, i)
        began = time.process_time()
        while (found := timers.next(1.0)) is not None:
            timers.remove(*found)
        return (time.process_time() - began) / n

    assert min(seconds(60_000) for _ in range(3)) < 20 * min(seconds(600) for _ in range(3))
