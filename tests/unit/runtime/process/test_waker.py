"""The pipe by which a thread wakes another one."""

from __future__ import annotations

import select

import pytest

from esault.runtime.process.waker import Waker


@pytest.fixture
def waker():
    made = Waker()
    yield made
    made.close()


def readable(waker):
    return bool(select.select([waker], [], [], 0)[0])


def test_it_is_readable_from_a_wake_until_it_is_cleared(waker):
    assert not readable(waker)
    waker.wake()
    waker.wake()
    assert readable(waker)
    waker.clear()
    assert not readable(waker)


def test_more_calls_than_the_pipe_holds_neither_block_nor_leave_anything(waker):
    for _ in range(70_000):  # a pipe of Linux holds 65 536 bytes
        waker.wake()
    waker.clear()
    assert not readable(waker)


def test_clearing_without_a_wake_does_not_wait(waker):
    waker.clear()
    assert not readable(waker)
