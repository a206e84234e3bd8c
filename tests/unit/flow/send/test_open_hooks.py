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

    def __init__(self, background=None):
        self.log, self.woken = [], 0
        self.hooks = OpenHooks("out", background, self.wake)

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
    first = it.call("write", Future(), 5)
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
