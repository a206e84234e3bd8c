"""Calls of a sink's hooks."""

from __future__ import annotations

import asyncio
import errno
from concurrent.futures import Future

import pytest

from esault.errors import EsaultError, SinkError, UsageError
from esault.flow.operators.user_error import ConnectorError
from esault.flow.send.sink_call import call_sink, future_of, waited


class Background:
    def submit(self, awaitable):
        future: Future = Future()

        async def run():
            return await awaitable

        future.set_result(asyncio.run(run()))
        return future


async def later():
    return 7


def test_what_is_done_is_told_from_what_is_not():
    assert future_of(None, None) is None and future_of(7, Background()) is None
    future: Future = Future()
    assert future_of(future, None) is future
    done = future_of(later(), Background())
    assert done is not None and done.result() == 7


def test_what_is_waited_for_is_its_result():
    future: Future = Future()
    future.set_result("x")
    assert [waited(each, Background()) for each in (None, 0, "a", future, later())] == [None, 0, "a", "x", 7]


def test_a_coroutine_without_a_loop_is_refused():
    made = later()
    with pytest.raises(EsaultError, match="no event loop"):
        future_of(made, None)
    made.close()


def raising(error):
    def call():
        raise error

    return call


def test_what_is_returned_is_returned():
    assert call_sink("s", "commit", lambda: 7) == 7


def test_a_sinks_own_error_names_the_sink_once_more():
    with pytest.raises(SinkError, match=r"^sink 's': full$"):
        call_sink("s", "commit", raising(SinkError("full")))


def test_other_errors_of_ours_are_as_they_are():
    error = UsageError("x")
    with pytest.raises(UsageError) as found:
        call_sink("s", "commit", raising(error))
    assert found.value is error


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_full_or_locked_disk_says_what_to_do(code):
    with pytest.raises(SinkError, match=r"sink 's' cannot commit: .* \(/out/f\); free space or mend permissions"):
        call_sink("s", "commit", raising(OSError(code, "why", "/out/f")))


@pytest.mark.parametrize(
    "error", [ValueError("x"), OSError(errno.EIO, "why"), OSError("odd"), KeyError("k"), RecursionError()]
)
def test_all_else_names_sink_hook_and_error(error):
    with pytest.raises(ConnectorError, match=rf"sink 's', commit: .*{type(error).__name__}") as found:
        call_sink("s", "commit", raising(error))
    assert found.value.__cause__ is error
