"""The folder of a shadow: what the first version read, what both put out, and whether the first still runs.

.esault/shadow/NAME/
  about.json        how the shadow runs, and what the first version has
  lock              held by the first version while it reads
  read/SPOUT        what each of its spouts has read; removed at the end
  first/SINK.jsonl  the rows that the first version gave to each sink
  shadow/SINK.jsonl the rows that the shadow gave to the sink of that name
  shadow/savepoints what both versions begin with, if that is not the beginning: one savepoint
  shadow/open/SPOUT there while its spout may have something to read
  shadow/paused     there where the first version was paused
  shadow/log        what the shadow has said; beside it its report.json
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.state.place import Place, link
from esault.state.savepoints import Savepoints

__all__ = ["ShadowFolder"]

_ABOUT, _LOCK = "about.json", "lock"
#: the name of the savepoint that both begin with
_START = "start"


class ShadowFolder:
    """The places in one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._lock: int | None = None

    @property
    def about(self) -> dict[str, Any]:
        """The contents of `about.json`."""
        found: dict[str, Any] = json.loads((self.path / _ABOUT).read_text(encoding="utf-8"))
        return found

    @property
    def log(self) -> Path:
        """The file of what the shadow says."""
        return self.path / "shadow" / "log"

    @property
    def state(self) -> Path:
        """The folder of the shadow's checkpoints."""
        return self.path / "shadow" / "state"

    @property
    def begun(self) -> Path:
        """The file that is there once the shadow waits for rows."""
        return self.path / "shadow" / "begun"

    @property
    def paused(self) -> Path:
        """The file that is there where the first version was paused, before it is known that it reads no more."""
        return self.path / "shadow" / "paused"

    @property
    def savepoint(self) -> Place | None:
        """The savepoint that the shadow begins with; None: it begins without state."""
        folder = Savepoints(self.path / "shadow").folder(_START)
        return folder if folder.is_dir() else None

    def keep_savepoint(self, kept: CompletedCheckpoint, source: Place) -> None:
        """Keep what bolts had in a checkpoint of the first version. Raises UsageError, CheckpointError."""
        bolts = {name: unit for name, unit in kept.units.items() if unit.kind == "bolt"}
        # what sinks have to commit the first version commits; its spouts alone go on where they were
        made = replace(kept, units=bolts, handles=())

        def fill(folder: Place) -> CompletedCheckpoint:
            for unit in bolts.values():
                for piece in unit.pieces:
                    link(source / piece.name, folder / piece.name)
            return made

        Savepoints(self.path / "shadow").build(_START, fill)

    def open_for(self, spout: str) -> Path:
        """Return the file that is there while a spout of the shadow may have something to read."""
        return self._open / _name(spout)

    @property
    def all_read(self) -> bool:
        """Return whether the spouts of the shadow have read all that the first version has, which was paused."""
        return not any(self._open.iterdir())

    @property
    def _open(self) -> Path:
        return self.path / "shadow" / "open"

    def read_by(self, spout: str) -> str:
        """Return the file of what a spout of the first version has read."""
        return str(self.path / "read" / _name(spout))

    def rows(self, side: str, sink: str) -> str:
        """Return the file of the rows of a sink; `side` is "first" or "shadow"."""
        return str(self.path / side / f"{_name(sink)}.jsonl")

    def dead_letters(self, path: str) -> str:
        """Return the file of the shadow's dead letters, in place of this one."""
        return str(self.path / "shadow" / "dead" / f"{_name(Path(path).stem)}.jsonl")

    def begin(self, about: dict[str, Any]) -> None:
        """Take the folder for a run, empty. Raises UsageError where another run has it, or it is none of these."""
        if self.path.exists() and not (self.path / _ABOUT).exists() and any(self.path.iterdir()):
            raise UsageError(f"--shadow: {self.path} holds other things; move them away")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UsageError(f"--shadow: {self.path} cannot be made: {error.strerror or error}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise UsageError(
                f"--shadow: another run has a shadow in {self.path}; wait until it has ended, or end it by esault stop"
            ) from None
        self._lock = lock
        for side in ("read", "first", "shadow"):
            shutil.rmtree(self.path / side, ignore_errors=True)
            (self.path / side).mkdir()
        self._open.mkdir()
        (self.path / _ABOUT).write_text(json.dumps(about), encoding="utf-8")

    def end_of_rows(self) -> None:
        """The first version reads no more: the shadow ends when it has read what is there."""
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # explicitly: a child may hold a copy of the descriptor
            os.close(self._lock)
            self._lock = None

    def may_get_rows(self) -> bool:
        """Return whether the first version is still there, as its shadow asks: a process that was killed is not."""
        with open(self.path / _LOCK, "rb") as lock:
            try:
                fcntl.flock(lock.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def forget_read(self) -> None:
        """Remove what was read: it is not needed any more."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.path / "read")


def _name(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")
