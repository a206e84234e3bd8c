"""An actor system starts fast, keeps to itself, and leaves nothing, however it ends."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from esault.errors import EsaultError, TopologyFailed, UsageError
from esault.runtime.actors import guard, processes, system
from esault.runtime.actors.actor import ReportingActor
from esault.runtime.process.descriptors import ROOM
from esault.runtime.session.session import _heard

ROOT = Path(__file__).parents[2]


class Echo(ReportingActor):
    def receiveMsg_str(self, message: str, sender: Any) -> None:
        if message == "pid":
            self.send(sender, os.getpid())
        elif message == "log":
            logging.getLogger("tests.echo").error("an actor's own words")
            self.send(sender, "logged")
        elif message == "sleep":
            time.sleep(0.3)
        else:
            self.send(sender, message)


class Broken(ReportingActor):
    def __init__(self) -> None:
        raise ValueError("made to fail")


@pytest.fixture
def handle() -> Iterator[system.ActorSystemHandle]:
    with system.start(secrets.token_bytes(32), title="esault test") as handle:
        yield handle


@contextlib.contextmanager
def command(scratch: Path | None = None, temp: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """A command with a system of its own (see command.py), and what it said of itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | ({"TMPDIR": str(temp)} if temp else {})
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("command.py")), *([str(scratch)] if scratch else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    family: list[psutil.Process] = []
    try:
        about = json.loads(process.stdout.readline())
        family = [psutil.Process(pid) for pid in about["pids"]]
        yield process, about
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        for each in family:  # whoever a failed test has left
            with contextlib.suppress(psutil.Error):
                each.kill()


def say(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def those_left(pids: list[int], within: float) -> list[int]:
    until = time.monotonic() + within
    while (left := [pid for pid in pids if runs(pid)]) and time.monotonic() < until:
        time.sleep(0.01)
    return left


def bound(ports: list[int]) -> list[int]:
    found = []
    for port in ports:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                found.append(port)
    return found


def title(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline()).strip()


def test_a_command_talks_with_an_actor(handle: system.ActorSystemHandle) -> None:
    echo = handle.create(Echo)
    assert handle.tell(echo, "hello")
    assert handle.listen(60) == "hello"
    started = time.monotonic()
    assert handle.listen(0.05) is None
    assert time.monotonic() - started < 0.5


def test_messages_come_in_order(handle: system.ActorSystemHandle) -> None:
    echo = handle.create(Echo)
    for number in range(200):
        handle.tell(echo, str(number))
    assert [handle.listen(60) for _ in range(200)] == [str(number) for number in range(200)]


def test_it_starts_fast() -> None:
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with system.start(secrets.token_bytes(32)) as handle:
            seconds.append(time.perf_counter() - started)
            assert handle.alive()
    assert min(seconds) < 0.25


def test_all_processes_have_the_title_of_the_run(handle: system.ActorSystemHandle) -> None:
    pytest.importorskip("setproctitle")
    handle.tell(handle.create(Echo), "x")
    handle.listen(60)
    assert title(handle.pid) == "esault test admin"
    assert [title(each.pid) for each in psutil.Process(handle.pid).children()] == ["esault test Echo"]


def test_after_shutdown_nothing_is_left_and_the_next_run_can_start(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "socket").touch()
    for _ in range(2):
        handle = system.start(secrets.token_bytes(32), scratch=scratch)
        handle.tell(handle.create(Echo), "pid")
        pids = [handle.pid, handle.listen(60)]
        started = time.monotonic()
        handle.shutdown()
        assert time.monotonic() - started < 1
        assert not any(map(runs, pids)) and not scratch.exists()
        assert not handle.alive()
        handle.shutdown()


def test_two_systems_of_a_process_do_not_meet_and_each_ends_alone(handle: system.ActorSystemHandle) -> None:
    refused = guard.refused()
    with system.start(secrets.token_bytes(32)) as other:
        for each, text in ((handle, "one"), (other, "other")):
            each.tell(each.create(Echo), text)
            assert each.listen(60) == text
    assert handle.alive() and not runs(other.pid)
    with system.start(secrets.token_bytes(32)) as third:
        third.tell(third.create(Echo), "third")
        assert third.listen(60) == "third"
    handle.tell(handle.create(Echo), "one")
    assert handle.listen(60) == "one"
    assert guard.refused() == refused


def test_a_system_that_is_shut_down_cannot_be_used() -> None:
    handle = system.start(secrets.token_bytes(32))
    handle.shutdown()
    with pytest.raises(UsageError, match="has been shut down"):
        handle.create(Echo)


def test_an_actor_need_not_wait_for_the_kernel_when_it_opens_more_connections(handle: system.ActorSystemHandle) -> None:
    handle.tell(handle.create(Echo), "pid")
    status = Path(f"/proc/{handle.listen(60)}/status").read_text()
    assert int(status.partition("FDSize:")[2].split()[0]) >= ROOM


def test_a_frozen_process_is_killed_at_the_deadline(handle: system.ActorSystemHandle) -> None:
    handle.tell(handle.create(Echo), "pid")
    pid = handle.listen(60)
    os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    handle.shutdown(0.3)
    assert 0.2 < time.monotonic() - started < 2
    assert not runs(pid) and not runs(handle.pid)


def test_a_frozen_actor_does_not_hold_up_a_message_for_another(handle: system.ActorSystemHandle) -> None:
    frozen, other = handle.create(Echo), handle.create(Echo)
    handle.tell(frozen, "pid")
    os.kill(handle.listen(60), signal.SIGSTOP)
    assert not handle.tell(frozen, "x", within=0.1)
    started = time.monotonic()
    assert handle.tell(other, "y") and handle.listen(60) == "y"
    assert time.monotonic() - started < 1
    handle.shutdown(0.1)


def test_a_message_to_a_dead_actor_is_not_delivered_and_nobody_waits(handle: system.ActorSystemHandle) -> None:
    echo = handle.create(Echo)
    handle.tell(echo, "pid")
    pid = handle.listen(60)
    os.kill(pid, signal.SIGKILL)
    assert not those_left([pid], 5)
    assert not handle.tell(echo, "x", within=3)


def test_an_actor_that_cannot_be_imported_is_an_error(handle: system.ActorSystemHandle) -> None:
    class Local(ReportingActor):
        pass

    with pytest.raises(EsaultError, match=r"no actor .*Local could be created"):
        handle.create(Local)


def test_an_actor_whose_process_dies_at_once_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_die_with_parent", lambda signum: signum == signal.SIGKILL and os._exit(9))
    with system.start(secrets.token_bytes(32)) as handle:
        started = time.monotonic()
        with pytest.raises(EsaultError, match=r"no actor Echo could be created: .*its process died at once"):
            handle.create(Echo)
        assert time.monotonic() - started < 2


@contextlib.contextmanager
def log(path: Path) -> Iterator[None]:
    file = logging.FileHandler(path)
    logging.getLogger().addHandler(file)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(file)
        file.close()


def test_an_actor_logs_where_the_command_logs(tmp_path: Path) -> None:
    with log(tmp_path / "log"), system.start(secrets.token_bytes(32)) as handle:
        handle.tell(handle.create(Echo), "log")
        assert handle.listen(60) == "logged"
    assert (tmp_path / "log").read_text() == "an actor's own words\n"


def test_an_actor_that_fails_when_made_says_why_in_the_log(tmp_path: Path) -> None:
    with log(tmp_path / "log"), system.start(secrets.token_bytes(32)) as handle:
        handle.create(Broken)
        until = time.monotonic() + 5
        while "made to fail" not in (tmp_path / "log").read_text() and time.monotonic() < until:
            time.sleep(0.01)
    assert "ValueError: made to fail" in (tmp_path / "log").read_text()


def test_when_the_admin_dies_the_command_is_told_and_nothing_is_left(handle: system.ActorSystemHandle) -> None:
    handle.tell(handle.create(Echo), "pid")
    pid = handle.listen(60)
    os.kill(handle.pid, signal.SIGKILL)
    with pytest.raises(system.SystemDied, match="the actor system has died"):
        handle.listen(60)
    with pytest.raises(
        TopologyFailed, match="the run's first process died"
    ):  # for a run it is a failure, not wrong use
        _heard(handle)
    assert not those_left([pid], 3)
    handle.shutdown()


def test_the_signals_of_the_terminal_do_not_reach_the_actors(handle: system.ActorSystemHandle) -> None:
    echo = handle.create(Echo)
    handle.tell(echo, "pid")
    pid = handle.listen(60)
    assert os.getsid(pid) != os.getsid(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # systemd's, too: the command deals with them
        for each in (pid, handle.pid):
            os.kill(each, number)
        handle.tell(echo, "still here")
        assert handle.listen(60) == "still here"


def test_the_commands_own_signal_handlers_are_not_the_actors() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda signum, frame: seen.append(signum))
    try:
        with system.start(secrets.token_bytes(32)) as handle:
            handle.tell(handle.create(Echo), "pid")
            pid = handle.listen(60)
            os.kill(pid, signal.SIGUSR1)
            assert not those_left([pid], 3)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == []


def test_a_system_outlives_the_thread_that_started_it() -> None:
    started: list[system.ActorSystemHandle] = []
    thread = threading.Thread(target=lambda: started.append(system.start(secrets.token_bytes(32))))
    thread.start()
    thread.join()
    with started[0] as handle:
        handle.tell(handle.create(Echo), "still here")
        assert handle.listen(60) == "still here"
    assert not runs(handle.pid)


def test_two_systems_at_once_do_not_meet(tmp_path: Path) -> None:
    with command(temp=tmp_path) as (one, about_one), command(temp=tmp_path) as (other, about_other):
        assert not set(about_one["ports"]) & set(about_other["ports"])
        assert say(one, "ask") == str(about_one["answer"])
        assert say(other, "ask") == str(about_other["answer"])
        assert say(one, "end") == "ended"
        assert not any(map(runs, about_one["pids"][1:]))
        assert say(other, "ask") == str(about_other["answer"])
        assert say(other, "end") == "ended"
        assert not bound(about_one["ports"] + about_other["ports"])
        assert list(tmp_path.iterdir()) == []


def test_a_command_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "socket").touch()
    with command(scratch, temp=tmp_path) as (process, about):
        assert len(about["pids"]) == 4 and all(map(runs, about["pids"]))
        os.kill(process.pid, signal.SIGKILL)
        assert those_left(about["pids"][1:], 3) == []
        assert list(tmp_path.iterdir()) == [] and not bound(about["ports"])


def test_a_command_that_is_killed_leaves_nothing_even_when_a_process_is_frozen() -> None:
    with command() as (process, about):
        assert say(process, "frozen") == "frozen"
        os.kill(process.pid, signal.SIGKILL)
        assert those_left(about["pids"][1:], 3) == []


def test_a_command_that_ends_without_shutdown_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import secrets; from esault.runtime.actors import system; handle = system.start(secrets.token_bytes(32));"
        "print(handle.pid, flush=True); raise SystemExit(3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert not those_left([int(done.stdout)], 1) and list(tmp_path.iterdir()) == []


def test_what_troubles_thespian_is_written_where_it_is_told(tmp_path: Path) -> None:
    with system.start(secrets.token_bytes(32), tmp_path / "thespian.log") as handle:
        echo = handle.create(Echo)
        handle.tell(handle.create(Broken), "x")
        handle.tell(echo, "x")
        assert handle.listen(60) == "x"
        time.sleep(0.1)
    assert "made to fail" in (tmp_path / "thespian.log").read_text()
