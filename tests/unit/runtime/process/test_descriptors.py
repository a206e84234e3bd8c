"""The reserve of descriptors of a process."""

from __future__ import annotations

import errno
import os

import pytest

from esault.runtime.process.descriptors import Reserve


class Machine:
    """So many descriptors are free; each operation takes one."""

    def __init__(self, reserve, free):
        self.reserve, self.free = reserve, free
        self.held_before = len(reserve._held)

    def open(self, name):
        given = self.held_before - len(self.reserve._held)
        if self.free + given <= 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.free -= 1
        return name


@pytest.fixture
def reserve():
    made = Reserve(2, clock=lambda: 0.0)
    made.fill()
    yield made
    while made.give_up():
        pass


def test_the_reserve_makes_room_where_there_is_none_until_it_is_used_up(reserve):
    machine = Machine(reserve, free=1)
    assert [machine.reserve.opened(machine.open, n) for n in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="Too many open files"):
        reserve.opened(machine.open, 3)


def test_any_other_error_takes_nothing_of_it(reserve):
    def refused():
        raise OSError(errno.ECONNREFUSED, "refused")

    with pytest.raises(OSError, match="refused"):
        reserve.opened(refused)
    assert reserve.give_up() and reserve.give_up() and not reserve.give_up()


def test_it_is_filled_again_after_a_while():
    now = [0.0]
    reserve = Reserve(1, clock=lambda: now[0])
    reserve.fill()
    assert reserve.give_up() and not reserve.give_up()
    reserve.fill()
    assert not reserve.give_up(), "its place is for another just now"
    now[0] = 1.0
    reserve.fill()
    assert reserve.give_up()
