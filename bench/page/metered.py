"""A command, and the processor time of it and of all that it starts: python -m bench.page.metered COMMAND ...

Prints what the command prints, and then a line of JSON: seconds of processor time of all. Processes whose parents have gone are adopted
here, so that none is missed; where parents do not wait for their children these are looked at while they live.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time

import psutil

__all__ = ["main"]

_SUBREAPER = 36
#: seconds between two looks at the processes
EVERY = 0.1


def main() -> int:
    """Run the command, and wait for all of its processes."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(sys.argv[1:])
    seen: dict[tuple[int, float], float] = {}
    here = psutil.Process()
    while process.poll() is None:
        for each in here.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                times, which = each.cpu_times(), (each.pid, each.create_time())
                seen[which] = times.user + times.system
        time.sleep(EVERY)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    print(json.dumps(sum(seen.values())))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
