from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from esault.state.locked_folder import LockedFolder, remove_stale


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def killed(prefix: str, place: Path) -> Path:
    """A folder that a process of its own has left, which was killed."""
    program = (
        "import os, signal\nfrom esault.state.locked_folder import LockedFolder\n"
        f"made = LockedFolder({prefix!r})\nprint(made.path, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    return Path(done.stdout.strip())


def test_what_a_killed_process_left_goes_and_what_is_in_use_or_of_another_kind_stays(tmp_path):
    mine, left = LockedFolder("a-"), killed("a-", tmp_path)
    other, foreign = LockedFolder("b-"), tmp_path / "a-of-others"
    foreign.mkdir()
    assert left.is_dir()
    remove_stale("a-")
    assert not left.exists()
    assert mine.path.is_dir() and other.path.is_dir() and foreign.is_dir()


def test_it_goes_when_it_is_closed_or_its_object_goes():
    one, two = LockedFolder("a-"), LockedFolder("a-")
    places = one.path, two.path
    (one.path / "x").write_text("x")
    one.close()
    one.close()
    del two
    assert not any(place.exists() for place in places)


def test_a_forked_process_takes_it_not_away():
    folder = LockedFolder("a-")
    if (child := os.fork()) == 0:
        folder.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.is_dir()
