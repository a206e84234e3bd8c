"""A command that tells that a host is about to be taken away: when it is asked, what it says, and what ends it."""

from __future__ import annotations

import errno
import os
import subprocess

import psutil
import pytest
from waiting import until

from esault.cluster.termination import EVERY, WITHIN, TerminationNotice
from esault.errors import UsageError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def asked(notice):
    """Let the command that runs end, and look at what it said."""
    os.waitid(os.P_PID, notice._process.pid, os.WEXITED | os.WNOWAIT)
    return notice.look()


def test_the_notice_is_there_once_the_command_ends_with_0_and_stays(tmp_path, clock):
    sign = tmp_path / "sign"
    notice = TerminationNotice(f"test -e '{sign}'", clock)
    assert not notice.look()
    sign.touch()
    clock.now += EVERY / 2
    assert not notice.look()
    assert notice._process is None, "it is not asked again so soon"
    clock.now += EVERY
    assert not notice.look()
    assert asked(notice)
    sign.unlink()
    clock.now += 10 * EVERY
    assert notice.look()


def test_one_that_is_there_at_the_start_is_seen(clock):
    assert TerminationNotice("true", clock).look()


def test_a_command_that_the_shell_does_not_find_is_refused():
    with pytest.raises(
        UsageError, match=r"--drain-when 'no-such-command-here -x': the shell cannot run it \(exit code 127\)"
    ):
        TerminationNotice("no-such-command-here -x")


def test_a_command_that_hangs_is_ended_with_all_that_it_started_and_asked_again(tmp_path, clock, caplog):
    notice = TerminationNotice("false", clock)
    notice.command = f"sleep 1000 & echo $! > '{tmp_path}/pid'; wait"
    clock.now += EVERY
    assert not notice.look()
    first = notice._process.pid
    until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().strip())
    clock.now += WITHIN + 1
    assert not notice.look()
    assert "took more than 10 s: ended, and asked again" in caplog.text
    started = int((tmp_path / "pid").read_text())
    until(lambda: not psutil.pid_exists(started) or psutil.Process(started).status() == psutil.STATUS_ZOMBIE)
    clock.now += EVERY
    notice.look()
    assert notice._process.pid != first
    notice.close()
    assert notice._process is None


def test_a_command_that_goes_away_meanwhile_or_finds_no_process_ends_no_node(clock, monkeypatch, caplog):
    notice = TerminationNotice("false", clock)
    notice.command = "no-such-command-here"
    for _ in range(2):
        clock.now += EVERY
        assert not notice.look()
        assert not asked(notice)
    assert caplog.text.count("the shell cannot run it any more") == 1

    def none(*args, **options):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", none)
    clock.now += EVERY
    assert not notice.look()
    assert "cannot be run just now" in caplog.text
    monkeypatch.undo()
    notice.command = "true"
    clock.now += EVERY
    notice.look()
    assert asked(notice)
