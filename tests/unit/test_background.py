"""The thread that runs coroutines of sinks begins with the first, and its end leaves none open; those for what blocks are used again."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref

import pytest

from esault import background
from esault.background import BackgroundLoop, in_background


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


class Idle(list):
    """Threads that wait for work; says when one does."""

    def __init__(self):
        super().__init__()
        self.came = threading.Semaphore(0)

    def append(self, worker):
        super().append(worker)
        self.came.release()


@pytest.fixture
def idle(monkeypatch):
    made = Idle()
    monkeypatch.setattr(background, "_idle", made)
    return made


def test_a_thread_that_is_done_does_what_comes_next(idle):
    places = []
    for _ in range(3):
        places.append(in_background(threading.get_ident).result(60))
        assert idle.came.acquire(timeout=60)
    assert len(set(places)) == 1
    assert places[0] != threading.get_ident()


def test_what_comes_while_one_is_at_work_does_not_wait_for_it(idle):
    goes_on = threading.Event()
    first = in_background(lambda: (goes_on.wait(60), threading.get_ident())[1])
    second = in_background(threading.get_ident)
    place = second.result(60)
    assert not first.done()
    goes_on.set()
    assert first.result(60) != place


def test_a_thread_ends_where_another_waits(idle):
    other, worker, done = background._Worker(), background._Worker(), []
    idle.append(other)
    worker.give(lambda: done.append(7))
    worker.run()
    assert done == [7]
    assert idle == [other]


def test_a_thread_outlives_what_its_work_raises(idle):
    def fails():
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        in_background(fails).result(60)
    assert idle.came.acquire(timeout=60)
    waits = idle[0]
    assert in_background(lambda: 7).result(60) == 7
    assert idle.came.acquire(timeout=60)
    assert idle == [waits]


def test_a_thread_that_waits_keeps_nothing_of_its_last_work(idle):
    class Rows:
        pass

    rows = Rows()
    seen = weakref.ref(rows)
    work = in_background(lambda rows=rows: rows is not None)
    assert work.result(60)
    assert idle.came.acquire(timeout=60)
    del rows, work
    gc.collect()
    assert seen() is None


@pytest.mark.slow
def test_a_forked_process_has_threads_of_its_own(idle):
    assert in_background(int).result(60) == 0
    assert idle.came.acquire(timeout=60)
    child = os.fork()
    if not child:
        os._exit(in_background(lambda: 3).result(60))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_work_that_is_under_way_cannot_be_cancelled_and_gives_its_result():
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert go_on.wait(60)
        return 7

    future = in_background(work)
    assert begun.wait(60)
    assert not future.cancel()
    go_on.set()
    assert future.result(60) == 7
