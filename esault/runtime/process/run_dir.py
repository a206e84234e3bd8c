"""The run's own folder: sockets and other short-lived files, entered by this user alone, gone with the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from esault.runtime.process.owner import Owner

__all__ = ["living_run_dirs", "make_run_dir", "remove_stale"]

_PREFIX = "esault-"


def _parent() -> Path:
    # Paths of sockets hold about 100 bytes: a deep TMPDIR would not do.
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and len(runtime) < 40 and os.access(runtime, os.W_OK):
        return Path(runtime)
    temporary = tempfile.gettempdir()
    return Path(temporary if len(temporary) < 60 else "/tmp")  # noqa: S108 - mkdtemp makes a folder of our own in it


def make_run_dir(owner: Owner) -> Path:
    """A new folder for a run of this owner."""
    remove_stale()
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner.pid}-{owner.start_time:.0f}-", dir=_parent()))


def living_run_dirs() -> list[Path]:
    """Folders of this user's runs whose owner lives."""
    found = []
    for path in _parent().glob(f"{_PREFIX}*-*-*"):
        with contextlib.suppress(ValueError, OSError):
            pid, started = path.name.removeprefix(_PREFIX).split("-")[:2]
            if path.stat().st_uid == os.getuid() and Owner(int(pid), float(started)).alive():
                found.append(path)
    return found


def remove_stale() -> None:
    """Remove folders of runs whose owner is gone, should one have been left by a power cut or the like."""
    for path in _parent().glob(f"{_PREFIX}*-*-*"):
        with contextlib.suppress(ValueError, OSError):
            pid, started = path.name.removeprefix(_PREFIX).split("-")[:2]
            if not Owner(int(pid), float(started)).alive() and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
