"""A process is known by its id and its start time, and a zombie is as good as gone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.runtime.process import owner
from esault.runtime.process.descriptors import reserve
from esault.runtime.process.owner import Owner


def test_this_process_is_alive() -> None:
    me = Owner.current()
    assert me.pid == os.getpid() and me.alive()
    assert me == Owner.of(os.getpid())


def test_another_process_with_the_same_id_is_not_the_owner() -> None:
    me = Owner.current()
    assert not Owner(me.pid, me.start_time - 1).alive()


def test_a_killed_process_is_not_alive_even_while_nobody_has_reaped_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    it = Owner.of(child.pid)
    assert it.alive()
    child.kill()
    until = time.monotonic() + 5
    while it.alive() and time.monotonic() < until:
        time.sleep(0.001)
    assert not it.alive()
    child.communicate()
    assert not it.alive()
    with pytest.raises(ProcessLookupError, match=f"no process {child.pid}"):
        Owner.of(child.pid)


def test_a_process_whose_name_holds_brackets_and_blanks_is_found(tmp_path: object) -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) S 1 (b', 0, 0, 0); print(flush=True); input()"
    if not sys.platform.startswith("linux"):
        pytest.skip("names are read from /proc")
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    before = Owner.of(child.pid)
    assert child.stdout is not None
    child.stdout.readline()
    assert before.alive()
    child.communicate(b"\n")


def test_without_proc_psutil_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_PROC", False)
    me = Owner.current()
    assert me.alive() and not Owner(me.pid, me.start_time - 10).alive()
    with pytest.raises(ProcessLookupError):
        Owner.of(2**22 + 1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_asking_is_cheap(monkeypatch) -> None:
    me, opened = Owner.current(), []
    real = reserve.opened

    def counted(*args: object) -> object:
        opened.append(args)
        return real(*args)

    monkeypatch.setattr(owner, "reserve", SimpleNamespace(opened=counted))
    monkeypatch.setitem(sys.modules, "psutil", None)  # which asks for much more
    assert me.alive()
    assert len(opened) == 1


@pytest.mark.parametrize(("number", "alive"), [(errno.EMFILE, True), (errno.EIO, False)])
def test_one_that_cannot_be_looked_at_for_want_of_descriptors_counts_as_alive(number, alive, monkeypatch) -> None:
    def opened(*args: object) -> object:
        raise OSError(number, os.strerror(number))

    me = Owner.current()
    monkeypatch.setattr(owner, "reserve", SimpleNamespace(opened=opened))
    if alive:
        assert me.alive()
    else:
        with pytest.raises(OSError, match="Input/output"):
            me.alive()
