"""Times that workers measured, on their way to the driver beside the rows.

What is measured differs each time that a batch is computed. Among the rows it would make each computation look like another one, and
Spark would compute all that follows again. So a worker leaves a small file, and the driver takes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from esault.errors import FrameError
from esault.payload.codec import Codec

__all__ = ["leave_times", "take_times"]

_FOLDER = "times"


def leave_times(shared: str, times: dict[str, Any]) -> None:
    """Leave what units took during a batch in a folder that the driver sees, too. What cannot be written is missing in the report.

    `shared`: empty where there is no such folder.
    """
    if times and shared:
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
