"""Times that workers measured, on their way to the driver beside the rows.

What is measured differs each time that a batch is computed. Among the rows it would make each computation look like another one, and
Spark would compute all that follows again. So a worker leaves a small file, and the driver takes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from esault.errors import FrameError
from esault.payload.codec import Codec

__all__ = ["leave_times", "seconds_of", "take_times"]

_FOLDER = "times"
#: beside units: (stage, seconds) of the process as a whole
_PROCESS = ""


def leave_times(shared: str, times: dict[str, Any], stage: str, seconds: float) -> None:
    """Leave what units took during a batch in a folder that the driver sees, too, and how long a process of `stage` was at it.

    What cannot be written is missing in the report. `shared`: empty where there is no such folder.
    """
    if shared:
        times = {**times, _PROCESS: (stage, seconds)}
        folder = Path(shared) / _FOLDER
        name = secrets.token_hex(8)
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
            (folder / f".{name}").write_bytes(Codec().pack(times))
            os.replace(folder / f".{name}", folder / name)


def take_times(shared: str) -> Iterator[dict[str, Any]]:
    """Yield what workers have left there, once."""
    for path in (Path(shared) / _FOLDER).glob("[!.]*") if shared else ():
        with contextlib.suppress(OSError, FrameError):
            data = path.read_bytes()
            path.unlink()
            yield Codec().unpack(data)


def seconds_of(left: Iterable[dict[str, Any]]) -> tuple[float, float] | None:
    """Return the seconds of a batch by what its processes have left: of the longest of each stage, and of all. None: none has left any."""
    longest: dict[str, float] = {}
    total = 0.0
    for times in left:
        if _PROCESS in times:  # 0.1 left none
            stage, seconds = times[_PROCESS]
            longest[stage] = max(seconds, longest.get(stage, 0.0))
            total += seconds
    return (sum(longest.values()), total) if longest else None
