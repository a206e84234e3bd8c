"""The owner of a run: known by its id and its start, also where its name is odd."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from esault.runtime.process.owner import Owner, _start_time_by_psutil


def test_this_process_is_alive_and_its_id_alone_is_not_it():
    me = Owner.current()
    assert me == Owner.of(os.getpid()) and me.alive()
    assert not Owner(me.pid, me.start_time + 1).alive()


@pytest.mark.parametrize("pid", [-1, 0, 2**31 - 1, 2**70])
def test_there_is_no_such_process(pid):
    with pytest.raises(ProcessLookupError):
        Owner.of(pid)


def test_a_process_that_has_ended_is_not_alive_before_it_is_reaped():
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    owner = Owner.of(child.pid)
    assert owner.alive()
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not owner.alive() and _start_time_by_psutil(child.pid) is None
    with pytest.raises(ProcessLookupError):
        Owner.of(child.pid)
    child.wait()
    assert not owner.alive()


def test_a_name_with_blanks_and_brackets_is_read_over(tmp_path):
    odd = tmp_path / "a) R 1 (b"
    os.symlink("/bin/cat", odd)
    child = subprocess.Popen([odd], stdin=subprocess.PIPE)
    try:
        assert Owner.of(child.pid).start_time - Owner.current().start_time >= 0
        assert Owner.of(child.pid).alive()
    finally:
        child.communicate()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="stopped by signals of Linux")
def test_a_stopped_process_is_alive():
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    try:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert Owner.of(child.pid).alive()
    finally:
        os.kill(child.pid, signal.SIGCONT)
        child.communicate()
