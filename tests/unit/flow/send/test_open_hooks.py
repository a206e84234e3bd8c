"""The hooks of a sink that are not done at once: in which order they are called, and what waits for what."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from esault.background import BackgroundLoop
from esault.errors import EsaultError
from esault.flow.operators.user_error import UserError
from esault.flow.send.open_hooks import MOST_WAITING, OpenHooks


class It:
    """Hooks whose results are given by hand, and what was called and done."""

    def __init__(self, background=None, first=0):
        self.log, self.woken = [], 0
        self.now = 0.0
        self.hooks = OpenHooks("out", background, self.wake, clock=lambda: self.now, first=first)

    def wake(self):
        self.woken += 1

    def call(self, hook, result=None, rows=0):
        def called():
            self.log.append(hook)
            return result

        if hook == "write":
            self.hooks.write(called, rows)
        else:
            self.hooks.call(hook, called, lambda done: self.log.append(f"{hook}={done}"))
        return result

    def take(self):
        log, self.log = self.log, []
        return log


def test_what_is_done_at_once_is_never_open():
    it = It()
    it.call("write", 17)  # what a file's write returns says nothing
    it.call("prepare", "h")
    assert it.take() == ["write", "prepare", "prepare=h"]
    assert not it.hooks.open


def test_behind_an_open_write_everything_waits_in_order_and_many_rows_make_it_full():
    it = It()
    first = it.call("write", Future(), MOST_WAITING)
    it.call("write", None, MOST_WAITING - 1)
    it.call("prepare", "h")
    assert it.take() == ["write"]
    assert it.hooks.open and not it.hooks.full
    it.call("write", None, 1)
    assert it.hooks.full
    it.hooks.advance()
    assert (it.take(), it.woken) == ([], 0)
    first.set_result(None)
    assert it.woken == 1
    it.hooks.advance()
    assert it.take() == ["write", "prepare", "prepare=h", "write"]
    assert not it.hooks.open and not it.hooks.full


def test_rows_are_written_while_a_future_of_prepare_is_open_and_the_next_prepare_waits():
    it = It()
    first = it.call("prepare", Future())
    it.call("write")
    it.call("commit", 0)
    second = it.call("prepare", Future())
    it.call("write")
    assert it.take() == ["prepare", "write", "commit", "commit=0"]
    first.set_result("h1")
    it.hooks.advance()
    assert it.take() == ["prepare=h1", "prepare", "write"]
    second.set_result("h2")
    it.hooks.advance()
    assert it.take() == ["prepare=h2"]
    assert not it.hooks.open


def test_while_a_coroutine_runs_nothing_else_is_called():
    background = BackgroundLoop()
    it, gate = It(background), Future()

    async def slow():
        import asyncio

        return await asyncio.wrap_future(gate)

    it.call("prepare", slow())
    it.call("write")
    it.hooks.advance()
    assert it.take() == ["prepare"]
    gate.set_result("h")
    it.hooks.finish()
    assert it.take() == ["prepare=h", "write"]
    background.close()


def test_an_error_names_sink_and_hook():
    it = It()
    future = it.call("commit", Future())
    future.set_exception(ValueError("no"))
    with pytest.raises(UserError, match="sink 'out', commit: ValueError: no"):
        it.hooks.advance()


def test_without_a_loop_a_coroutine_is_refused():
    async def hook():
        pass

    made = hook()
    with pytest.raises(EsaultError, match="no event loop"):
        It().call("prepare", made)
    made.close()


def test_what_is_given_up_is_called_no_more():
    it = It()
    future = it.call("write", Future())
    it.call("prepare", "h")
    it.hooks.abandon()
    assert future.cancelled()
    it.hooks.advance()
    assert it.take() == ["write"]
    assert not it.hooks.open


def test_a_slow_write_has_few_rows_wait_and_a_quick_one_many_again():
    it = It(first=1)
    assert it.hooks.most == 1, "an async write may take long, and nobody knows yet"
    for rows, seconds, most in (
        (1, 0.01, 16),
        (16, 0.16, 50),
        (50, 0.5, 50),
        (50, 25.0, 1),
        (1, 0.0, 16),
        (16, 1e-4, 256),
    ):
        written = it.call("write", Future(), rows)
        it.call("write", None, most)
        it.now += seconds
        written.set_result(None)
        it.hooks.advance()
        it.take()
        it.hooks._allow(most)  # what waited was done at once, which says that it is quick
        assert it.hooks.most == most
    it.call("write", Future(), 256)
    it.call("write", None, 255)
    assert not it.hooks.full
    it.call("write", None, 1)
    assert it.hooks.full


def test_writes_that_are_done_at_once_end_the_bound():
    it = It()
    away = it.call("write", Future(), 4096)
    it.now += 20.48
    away.set_result(None)
    it.hooks.advance()
    assert it.hooks.most == 100, "a server that was away for a while"
    for most in (1600, 0):
        it.call("write", None, 100)
        assert it.hooks.most == most
