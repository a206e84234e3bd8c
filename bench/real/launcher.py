"""Run a command and say what it cost with all its processes; prints one line of JSON.

python -m bench.real.launcher [--weigh] COMMAND ...

Processes whose parent has ended become children of this one, so that their time is counted too. With --weigh it also looks at all
of them while they run: at their memory, and at their time, to be compared with what was waited for. That takes a part of a
processor, so such a run is not to be timed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from types import FrameType

import psutil

__all__ = ["run"]

#: seconds between two looks at the processes
EVERY = 0.05
#: seconds that processes may go on after their command has ended
LINGER = 10.0
#: of prctl(2): orphans of all descendants become children of this process
SUBREAPER = 36


class _Looks(threading.Thread):
    """Looks at all descendants until it is stopped: their time and their memory."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        #: process and its start -> seconds in user and system mode, when last seen
        self.seconds: dict[tuple[int, float], float] = {}
        self.most_pss = 0
        self._over = threading.Event()

    def run(self) -> None:
        """The thread."""
        while not self._over.wait(EVERY):
            self._look()

    def _look(self) -> None:
        """Look once."""
        pss = 0
        for process in psutil.Process().children(recursive=True):
            try:
                times = process.cpu_times()
                self.seconds[process.pid, process.create_time()] = times.user + times.system
                pss += process.memory_full_info().pss  # from smaps_rollup
            except psutil.Error:
                continue
        self.most_pss = max(self.most_pss, pss)

    def stop(self) -> None:
        """No looks after this."""
        self._over.set()
        self.join()


def _wait_for_orphans(until: float) -> list[int]:
    """Wait for all children that are left; those that are there still at `until` are killed and given back."""
    while True:
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                if time.time() > until:
                    break
                time.sleep(0.005)
        except ChildProcessError:
            return []
    left = psutil.Process().children(recursive=True)
    for process in left:
        process.kill()
    return [process.pid for process in left]


def _measured(command: list[str], weigh: bool) -> dict[str, object]:
    """Run it; what it cost."""
    if ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this process cannot adopt the orphans of its command: it needs Linux 3.4")
    looks = _Looks() if weigh else None
    with tempfile.TemporaryFile() as said:
        begun = time.time()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)

        def caught(number: int, frame: FrameType | None) -> None:
            process.send_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, caught)
        if looks is not None:
            looks.start()
        code = process.wait()
        ended = time.time()
        left = _wait_for_orphans(ended + LINGER)
        if looks is not None:
            looks.stop()
        said.seek(max(0, said.seek(0, os.SEEK_END) - 4000))
        text = said.read().decode(errors="replace")
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "code": code,
        "said": text,
        "left": left,
        "begun": begun,
        "ended": ended,
        "waited_seconds": waited.ru_utime + waited.ru_stime,
        "seen_seconds": sum(looks.seconds.values()) if looks else None,
        "processes": len(looks.seconds) if looks else None,
        "pss_mib": looks.most_pss / 2**20 if looks else None,
    }


def run() -> None:
    """Run as the arguments say."""
    arguments = sys.argv[1:]
    weigh = arguments[:1] == ["--weigh"]
    print(json.dumps(_measured(arguments[weigh:], weigh)))


if __name__ == "__main__":
    run()
