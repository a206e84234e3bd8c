"""Signals that end a run, and a terminal that has gone."""

from __future__ import annotations

import os
import pty
import signal

import pytest

from esault.runtime.process.signals import ending_signals, leave_terminal


@pytest.mark.parametrize(("handler", "ends"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_under_nohup_a_closed_terminal_ends_nothing(handler, ends):
    before = signal.signal(signal.SIGHUP, handler)
    try:
        found = ending_signals()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert {signal.SIGINT, signal.SIGTERM} <= set(found) and (signal.SIGHUP in found) is ends


def outputs(replace):
    """What fds 1 and 2 are after `leave_terminal`, where `replace` says what they were."""
    kept = os.dup(1), os.dup(2)
    try:
        replace()
        leave_terminal()
        return os.fstat(1).st_rdev, os.fstat(2).st_rdev
    finally:
        for number, old in enumerate(kept, 1):
            os.dup2(old, number)
            os.close(old)


def test_a_closed_terminal_is_left_for_nowhere(capfd):
    master, slave = pty.openpty()

    def replace():
        os.dup2(slave, 1)
        os.dup2(slave, 2)
        os.close(slave)
        os.close(master)

    assert set(outputs(replace)) == {os.stat("/dev/null").st_rdev}


def test_files_and_live_terminals_stay(tmp_path, capfd):
    master, slave = pty.openpty()
    here = os.fstat(slave).st_rdev

    def replace():
        os.dup2(slave, 1)
        file = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 2)
        os.close(file)
        os.close(slave)

    try:
        assert outputs(replace) == (here, 0)
    finally:
        os.close(master)
