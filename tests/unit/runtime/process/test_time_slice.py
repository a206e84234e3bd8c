"""A thread asks for a short slice, and keeps what someone has chosen for it."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import threading

import pytest

from esault.runtime.process.time_slice import MOST_RESTS, REST, SLICE, STRETCH, GiveWay, short_slice

GETATTR = {"x86_64": 315, "aarch64": 275}


def release():
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


def in_thread(do):
    """What it returns in a thread of its own, which takes with it what it has set."""
    found = []
    thread = threading.Thread(target=lambda: found.append(do()))
    thread.start()
    thread.join()
    return found[0]


def attributes():
    room = ctypes.create_string_buffer(56)
    assert ctypes.CDLL(None).syscall(GETATTR[platform.machine()], 0, room, 56, 0) == 0
    _, policy, _, nice, _, runtime, *_ = struct.unpack("=IIQiIQQQII", room.raw)
    return policy, nice, runtime


@pytest.mark.skipif(platform.machine() not in GETATTR, reason="its number of the system call is not known here")
@pytest.mark.skipif(release() < (6, 12), reason="slices of threads came with Linux 6.12")
def test_a_thread_gets_the_slice_and_keeps_its_niceness():
    def do():
        before = attributes()
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), before[1] + 1 if before[1] < 19 else 19)
        nice = attributes()[1]
        return short_slice(), attributes(), nice

    given, (policy, niceness, runtime), nice = in_thread(do)
    assert given
    assert (policy, niceness, runtime) == (os.SCHED_OTHER, nice, int(SLICE * 1e9))


@pytest.mark.parametrize("policy", [os.SCHED_BATCH, os.SCHED_IDLE])
def test_a_policy_that_someone_has_chosen_stays(policy):
    def do():
        os.sched_setscheduler(0, policy, os.sched_param(0))
        return short_slice(), os.sched_getscheduler(0)

    assert in_thread(do) == (False, policy)


def test_an_unknown_machine_is_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "z80")
    assert not in_thread(short_slice)


class Worked:
    """A clock that work and rests move, and the rests that were taken."""

    def __init__(self):
        self.now, self.rests = 0.0, []

    def sleep(self, seconds):
        self.rests.append(round(self.now, 6))
        self.now += seconds

    def work(self, seconds):
        self.now += seconds


def test_a_piece_of_work_rests_once_it_has_worked_for_a_stretch():
    worked = Worked()
    give_way = GiveWay(lambda: worked.now, worked.sleep)
    worked.work(1.0)  # another piece, or a wait, before this one
    give_way.begin()
    for _ in range(6):
        worked.work(STRETCH / 2)
        give_way()
    each = STRETCH + REST
    assert worked.rests == pytest.approx([1.0 + STRETCH, 1.0 + STRETCH + each, 1.0 + STRETCH + 2 * each])


def test_a_long_piece_rests_so_often_and_then_goes_on_and_the_next_rests_again():
    worked = Worked()
    give_way = GiveWay(lambda: worked.now, worked.sleep)
    for piece in (1, 2):
        give_way.begin()
        for _ in range(3 * MOST_RESTS):
            worked.work(STRETCH)
            give_way()
        assert len(worked.rests) == piece * MOST_RESTS
