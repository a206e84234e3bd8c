"""The reserve of descriptors of a process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from esault.runtime.process.descriptors import ROOM, Reserve


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


#: in a process of its own: a table that is large stays so. Where none is free, the table cannot be asked for either
TABLE = """
import os, re, resource
from esault.runtime.process.descriptors import make_room

limit = {limit}
before = os.listdir("/proc/self/fd")
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
make_room()
if limit > 3:
    assert os.listdir("/proc/self/fd") == before, "one was left open"
    with open("/proc/self/status") as status:
        print(re.search(r"FDSize:.(\\d+)", status.read())[1])
"""


@pytest.mark.parametrize(("limit", "places"), [(4096, ROOM), (300, 300), (3, None)])
def test_there_is_room_from_the_start_for_as_many_as_there_may_be(limit, places):
    done = subprocess.run(
        [sys.executable, "-c", TABLE.format(limit=limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert places is None or int(done.stdout) >= places
