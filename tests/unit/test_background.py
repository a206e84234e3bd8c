"""The thread that runs coroutines of sinks: it begins with the first, and its end leaves none open."""

from __future__ import annotations

import asyncio
import threading

import pytest

from esault.background import BackgroundLoop


@pytest.fixture
def loop():
    made = BackgroundLoop()
    yield made
    made.close()


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "esault-background"]


def test_it_has_no_thread_before_the_first_coroutine_and_one_for_all(loop):
    before = len(threads())

    async def where():
        return threading.current_thread().name

    assert len(threads()) == before
    assert [loop.submit(where()).result(60) for _ in range(3)] == ["esault-background"] * 3
    assert len(threads()) == before + 1


def test_what_a_coroutine_raises_is_raised_by_who_asks(loop):
    async def fails():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        loop.submit(fails()).result(60)


def test_whatever_can_be_awaited_is(loop):
    class Ready:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return 7

    assert loop.submit(Ready()).result(60) == 7


def test_what_is_open_at_its_end_is_cancelled_and_it_can_begin_anew(loop):
    begun, ended = threading.Event(), []

    async def waits():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    waiting = loop.submit(waits())
    assert begun.wait(60)
    loop.close()
    assert waiting.cancelled()
    assert ended == [True]

    async def again():
        return "again"

    assert loop.submit(again()).result(60) == "again"


def test_one_that_never_began_is_closed_at_once():
    BackgroundLoop().close()
