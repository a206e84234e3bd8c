"""An audit log: who asked a node or a run for what, and what was answered. One JSON object a line, in files that follow one another."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import math
import os
import threading
from datetime import datetime, timezone
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from esault.errors import UsageError

__all__ = ["AuditLog"]

#: bytes of one file, and older ones that are kept: NAME.1 is the newest of them
FILE_BYTES, OLDER_FILES = 10 << 20, 9
#: characters of one value
_LONGEST = 300


class AuditLog:
    """Writes for this user's eyes only. `write` may be called by any thread, and never raises: the first failure is logged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises UsageError where the file cannot be written."""
        try:
            self._file = _File(Path(path))
        except OSError as error:
            raise UsageError(f"the audit log {path} cannot be written: {error.strerror or error}") from None
        self._lock = threading.Lock()
        self._failing = False

    def write(self, who: str, address: str, does: str, answer: str, /, **more: Any) -> None:
        """One line. `answer`: "accepted", or why not; `more`: what was asked for."""
        told = {name: value if _is_number(value) else str(value)[:_LONGEST] for name, value in more.items()}
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        said = {"time": now, "who": who[:_LONGEST], "from": address[:_LONGEST], "do": does[:_LONGEST]}
        # What was asked for stands in for none of these, whatever its names are.
        line = json.dumps(said | told | said | {"answer": answer[:_LONGEST]})
        with self._lock:
            try:
                self._file.line(line)
                self._failing = False
            except OSError as error:  # a full disk ends no run
                if not self._failing:
                    logging.getLogger("esault").error("the audit log cannot be written: %s", error)
                self._failing = True

    def close(self) -> None:
        """Close the file. Lines that a full disk did not take are lost."""
        with contextlib.suppress(OSError):
            self._file.close()


def _is_number(value: object) -> bool:
    """Return whether JSON has it as a number, or as true or false."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


class _File(logging.handlers.RotatingFileHandler):
    """The standard library's rotation of files, whose errors are raised."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=OLDER_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(descriptor, "a", encoding="utf-8")

    def line(self, text: str) -> None:
        """Add a line. Raises OSError."""
        record = logging.LogRecord("audit", logging.INFO, "", 0, text, None, None)
        if self.shouldRollover(record):
            self.doRollover()
        assert self.stream is not None  # it was opened with the handler
        self.stream.write(text + "\n")
        self.stream.flush()
