"""The process that commits to one Delta table, as the sink sees it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from typing import Any

from esault.errors import SinkError

__all__ = ["Committer"]

#: modules are found there as here, also where they are in an archive or the user's folder
_START = (
    "import sys; path, parent, sys.path[:] = sys.argv[1], int(sys.argv[2]), sys.argv[3:]; "
    "from esault.sinks.delta.commit_process import serve; serve(path, parent)"
)
#: seconds that it has to end, once it has nothing to do
_END_WITHIN = 10.0


class Committer:
    """Starts the process when it is first asked, and again where it has died: whatever it is asked may come again."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id, where it runs."""
        return None if self._process is None else self._process.pid

    def ask(self, do: str, **arguments: Any) -> Any:
        """Have one method of `DeltaCommits` called, and return what it does. Raises SinkError."""
        request = json.dumps({"do": do, **arguments}).encode() + b"\n"
        for _ in range(2):
            answer = self._asked(request)
            if answer is not None:
                break
        else:
            # may pass: the engine tries again some times
            raise SinkError(
                f"Delta table {self.path}: the process that commits to it died twice. See whether the system ended it, "
                "such as for want of memory (dmesg)"
            ) from ConnectionResetError(errno.ECONNRESET, "the process died")
        if answer.get("missing"):
            raise SinkError(f"DeltaSink needs deltalake >= 1.6 ({answer['error']}): pip install 'esault[delta]'")
        if "error" in answer:
            number = answer.get("errno")
            cause = None if number is None else OSError(number, os.strerror(number))
            raise SinkError(answer["error"]) from cause
        return answer["result"]

    def _asked(self, request: bytes) -> dict[str, Any] | None:
        """The answer; None where the process has died."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        # Not by multiprocessing: forks are what must not be, and its ways to spawn import the main module.
        return subprocess.Popen(
            [sys.executable, "-c", _START, self.path, str(os.getpid()), *map(os.path.abspath, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def close(self) -> None:
        """End the process, where there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
