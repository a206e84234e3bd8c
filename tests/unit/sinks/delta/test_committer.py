"""The process that commits, as the sink sees it: what is asked again, and what is said where it cannot be had."""

from __future__ import annotations

import io
import json
import subprocess

import pytest

from esault.errors import SinkError
from esault.flow.operators.user_error import is_transient
from esault.sinks.delta import commit_process
from esault.sinks.delta.committer import Committer


class Process:
    """Answers what it is given, then it is dead."""

    pid = 7

    def __init__(self, *answers, stays=False):
        self.stdin = io.BytesIO()
        self.stdout = io.BytesIO(b"".join(json.dumps(answer).encode() + b"\n" for answer in answers))
        self.stays, self.killed = stays, False

    def wait(self, timeout=None):
        if self.stays and not self.killed:
            raise subprocess.TimeoutExpired("", timeout)

    def kill(self):
        self.killed = True


@pytest.fixture
def processes(monkeypatch):
    """Those that are started, one after another."""
    waiting = []
    monkeypatch.setattr("subprocess.Popen", lambda *arguments, **named: waiting.pop(0))
    return waiting


def test_it_is_started_when_it_is_asked_and_once(processes):
    processes += [Process({"result": 1}, {"result": None})]
    asked = Committer("t")
    assert asked.pid is None
    assert asked.ask("look") == 1
    assert asked.ask("look") is None
    assert asked.pid == 7
    asked.close()
    asked.close()
    assert asked.pid is None


def test_one_that_has_died_is_asked_again_once(processes):
    processes += [Process(), Process({"result": 1})]
    assert Committer("t").ask("look") == 1
    processes += [Process(), Process()]
    with pytest.raises(SinkError, match="died twice") as raised:
        Committer("t").ask("look")
    assert is_transient(raised.value)


def test_one_that_cannot_be_written_to_has_died(processes):
    broken = Process({"result": 0})

    class Broken(io.BytesIO):
        def write(self, data):
            raise BrokenPipeError

    broken.stdin = Broken()
    processes += [broken, Process({"result": 1})]
    assert Committer("t").ask("look") == 1


def test_what_it_says_is_raised(processes):
    processes += [Process({"error": "no module", "missing": True}, {"error": "full", "errno": 28}, {"error": "no"})]
    asked = Committer("t")
    with pytest.raises(SinkError, match=r"needs deltalake >= 1.6 \(no module\): pip install 'esault\[delta\]'"):
        asked.ask("look")
    with pytest.raises(SinkError, match="full") as raised:
        asked.ask("look")
    assert is_transient(raised.value), "a full disk may have room later"
    with pytest.raises(SinkError, match="no") as raised:
        asked.ask("look")
    assert not is_transient(raised.value)


def test_one_that_does_not_end_is_killed(processes):
    stays = Process({"result": 1}, stays=True)
    processes += [stays]
    asked = Committer("t")
    asked.ask("look")
    asked.close()
    assert stays.killed


def test_requests_are_lines_until_there_is_none_to_ask(monkeypatch):
    pieces = [b'{"a"', b": 1}\n{}\n", b"half"]
    monkeypatch.setattr("os.getppid", lambda: 5)
    monkeypatch.setattr("select.select", lambda *_: ([0], [], []) if len(pieces) != 2 or quiet() else ([], [], []))
    monkeypatch.setattr("os.read", lambda *_: pieces.pop(0) if pieces else b"")
    calls = []

    def quiet():
        calls.append(1)
        return len(calls) > 1

    assert list(commit_process._lines(5)) == [b'{"a": 1}', b"{}"]
    assert list(commit_process._lines(6)) == [], "its parent is gone"
