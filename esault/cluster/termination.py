"""A notice that this host is about to be taken away, as spot instances of clouds get one: a command of the user's tells."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable

from esault.errors import UsageError

__all__ = ["TerminationNotice"]

#: seconds between the end of the command and its next start, and those that it may take
EVERY, WITHIN = 5.0, 10.0
#: exit codes by which a shell says that there is no such command, or that it may not be run
_NO_COMMAND = (126, 127)

log = logging.getLogger("esault.node")


class TerminationNotice:
    """Runs a command of the shell now and then; exit code 0 says that the notice is there. Call `look` a few times a second."""

    def __init__(self, command: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises UsageError where the shell finds no such command. It is run once, for that."""
        self.command = command
        self._clock = clock
        self._began = clock()
        self._process: subprocess.Popen[bytes] | None = self._start()
        self._next = 0.0
        self._given = self._told = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(WITHIN)
            if code in _NO_COMMAND:
                raise UsageError(f"--drain-when {command!r}: the shell cannot run it (exit code {code}): name it whole")
            self._take(code)

    def _start(self) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            ["/bin/sh", "-c", self.command], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def look(self) -> bool:
        """Return whether the notice is there, as far as the command has told. Does not wait."""
        now = self._clock()
        if self._given:
            return True
        if self._process is None:
            if now >= self._next:
                try:
                    self._began, self._process = now, self._start()
                except OSError as error:  # no descriptor or process is to be had: the runs here must not end for that
                    self._next = now + EVERY
                    log.warning("--drain-when %r cannot be run just now: %s", self.command, error)
            return False
        code = self._process.poll()
        if code is not None:
            self._take(code)
        elif now - self._began > WITHIN:
            log.warning("--drain-when %r took more than %g s: ended, and asked again", self.command, WITHIN)
            self.close()
            self._next = now + EVERY
        return self._given

    def _take(self, code: int) -> None:
        self._process, self._next = None, self._clock() + EVERY
        if code in _NO_COMMAND and not self._told:  # it was there when the node began
            self._told = True
            log.warning("--drain-when %r: the shell cannot run it any more (exit code %d)", self.command, code)
        self._given = code == 0

    def close(self) -> None:
        """End the command, with all that it has started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
