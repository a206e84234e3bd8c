"""Forks that failed: tried again ever later, and given up."""

from __future__ import annotations

import errno

import pytest

from esault.messages.control import Build, Fork
from esault.messages.settings import Settings
from esault.runtime.worker.fork_retries import GIVE_UP_AFTER, ForkRetries, shortage


def fork(incarnation):
    return Fork(Build(unit="count", incarnation=incarnation, epoch=1, host="h", run="r", settings=Settings()))


def test_a_fork_is_tried_again_ever_later_until_it_is_given_up():
    retries, now, waits = ForkRetries(), 100.0, []
    while True:
        tries, again = retries.failed(fork(7), now)
        waits.append(again)
        if not again:
            break
        assert retries.due(now + again * 0.9) == []
        assert [each.build.incarnation for each in retries.due(now + again)] == [7]
        now += again
    assert waits[:5] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert max(waits) == 4.0
    assert GIVE_UP_AFTER <= now - 100.0 <= GIVE_UP_AFTER + 4.0
    assert tries == len(waits)
    assert retries.due(now + 100) == []


def test_one_whose_process_is_there_is_not_forked_again_and_its_tries_go_on_where_that_cannot_begin():
    retries = ForkRetries()
    retries.failed(fork(7), 0.0)
    retries.forked(7)
    assert retries.due(100.0) == []
    assert retries.failed(fork(7), 1.0) == (2, 0.5)
    assert retries.forget(7)
    assert not retries.forget(7)


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EAGAIN, "ulimit -u"), (errno.ENOMEM, "memory"), (errno.EMFILE, "ulimit -n")]
)
def test_what_is_missing_is_said_with_the_remedy(number, remedy):
    assert remedy in shortage(OSError(number, "so"))
