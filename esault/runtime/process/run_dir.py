"""The run's own folder: sockets and other short-lived files, entered by this user alone, gone with the run.

The run holds a lock on it (flock), which ends when the last of its processes has. A lock holds across containers that share the
folder above, where process ids say nothing; systemd-tmpfiles leaves locked folders alone, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from esault.runtime.process.owner import Owner

__all__ = ["RunDir", "living_run_dirs", "name_of", "remove_stale"]

_PREFIX = "esault-"
#: file in the folder that says what the run is called
_NAME = "name"


def _parent() -> Path:
    # Paths of sockets hold about 100 bytes: a deep TMPDIR would not do.
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and len(runtime) < 40 and os.access(runtime, os.W_OK):
        return Path(runtime)
    temporary = tempfile.gettempdir()
    return Path(temporary if len(temporary) < 60 else "/tmp")  # noqa: S108 - mkdtemp makes a folder of our own in it


class RunDir:
    """A new folder for a run of this owner, and the lock on it."""

    def __init__(self, owner: Owner, topology: str = "", run: str = "") -> None:
        """`topology` and `run`: what the run is called, where commands may be for it; a host's part of another one's run has no name."""
        self._name = json.dumps({"topology": topology, "run": run}) if run else ""
        remove_stale()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner.pid}-{owner.start_time:.0f}-", dir=_parent()))
            # Another run that begins now may have found it without its lock, and removed it.
            with contextlib.suppress(FileNotFoundError):
                self._lock = _locked(self.path)
                if not self.lost:
                    self._write_name()
                    return
                os.close(self._lock)

    def _write_name(self) -> None:
        if self._name:
            (self.path / _NAME).write_text(self._name)

    @property
    def lost(self) -> bool:
        """True when another program has removed or replaced the folder; 3 us."""
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self._lock))
        except FileNotFoundError:
            return True

    def make_again(self) -> None:
        """Make a lost folder again, empty. Raises OSError, such as where something else has its name."""
        self.path.mkdir(mode=0o700)
        lock = _locked(self.path)
        # In place, so that processes that are forked later have this one.
        os.dup2(lock, self._lock, inheritable=False)
        os.close(lock)
        self._write_name()

    def close(self) -> None:
        """Let go of the folder, which `system.start` removes."""
        os.close(self._lock)


def _locked(path: Path) -> int:
    """Return an open descriptor of the folder, locked where its file system knows locks."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.flock(opened, fcntl.LOCK_EX)
    return opened


def _lock_is_free(opened: int, how: int) -> bool:
    """Take the lock of a folder; False where a process has it, or it cannot be known."""
    try:
        fcntl.flock(opened, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def living_run_dirs() -> list[Path]:
    """Folders of this user's runs that live: their lock is held, or their owner is there."""
    found = []
    for path, owner in _folders():
        with _open(path) as opened:
            if opened is not None and (not _lock_is_free(opened, fcntl.LOCK_SH) or owner.alive()):
                found.append(path)
    return found


def name_of(folder: Path) -> tuple[str, str] | None:
    """Return the topology and the id of the run that has this folder, whether it answers or not; None where it has no name."""
    try:
        found = json.loads((folder / _NAME).read_text())
        return str(found["topology"]), str(found["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_stale() -> None:
    """Remove folders of runs that are over, should one have been left by a power cut or the like.

    Their locks are free. A folder without a lock may be that of an older version, whose owner tells.
    """
    for path, owner in _folders():
        with _open(path) as opened:
            if opened is not None and _lock_is_free(opened, fcntl.LOCK_EX) and not owner.alive():
                shutil.rmtree(path, ignore_errors=True)


def _folders() -> list[tuple[Path, Owner]]:
    """Folders of this user's runs, with the owners that their names tell."""
    found = []
    for path in _parent().glob(f"{_PREFIX}*-*-*"):
        with contextlib.suppress(ValueError, OSError):
            pid, started = path.name.removeprefix(_PREFIX).split("-")[:2]
            owner = Owner(int(pid), float(started))
            if path.stat().st_uid == os.getuid():
                found.append((path, owner))
    return found


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int | None]:
    """Open the folder for the time of the block; None where it is gone, or no folder."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)
