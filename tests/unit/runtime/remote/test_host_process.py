"""The process of a run on another host, where the host has no room for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from esault.cluster.codec import pack
from esault.cluster.messages import StartHost
from esault.cluster.versions import installed
from esault.messages.settings import Settings

#: the program, on a disk that is full
PROGRAM = """
import errno, os, sys
from esault.runtime.remote import host_process
def full(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
setattr(host_process, sys.argv[1], full)
sys.exit(host_process.main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["RunDir", "unload"])
def test_a_host_without_room_says_so_and_leaves_nothing(tmp_path, monkeypatch, what):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    order = StartHost("r", "t", 1, "f", None, "m", (), "/", {}, Settings(), {}, None, 0.0, 0.0, "key")
    file = tmp_path / "order"
    file.write_bytes(pack(order))
    arguments = [what, str(file), "a", "127.0.0.1", str(os.getpid()), installed()]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == "later host a cannot make the run's folder: [Errno 28] No space left on device\n"
    assert list(tmp_path.iterdir()) == []
