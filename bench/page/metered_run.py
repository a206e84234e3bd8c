"""`bench.kit.esault_run` with a meter on all that is done for the page, in every process: python -m bench.page.metered_run ...

Prints one more line of JSON: processor seconds by part, and how often each was called.
"""

from __future__ import annotations

import functools
import json
import mmap
import time
from collections.abc import Callable
from typing import Any

from bench.kit.esault_run import run
from esault.control.report.timeline import Timeline
from esault.runtime.driver.driver_actor import DriverActor
from esault.runtime.session.session import Session
from esault.ui.http_server import HttpServer
from esault.ui.web.history import History

__all__ = ["main"]

#: what is called for the page alone. Each thread is in one of a part at a time, and no part is called by another one
PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "the driver makes windows": ((Timeline, "next_page"), (Timeline, "last")),
    "the driver sends them": ((DriverActor, "_show"),),
    "the command takes them": ((Session, "_show_page"),),
    "the command notes snapshots": ((History, "see"),),
    "the server listens": ((HttpServer, "serve_forever"),),
    "the server answers": ((HttpServer, "process_request_thread"),),
}


class _Meters:
    """Sums in memory that the run's processes share: they are forked, and each part is summed up in one process alone."""

    def __init__(self) -> None:
        self._sums = memoryview(mmap.mmap(-1, 16 * len(PARTS))).cast("d")

    def put(self) -> None:
        """Put a meter on each part."""
        for i, functions in enumerate(PARTS.values()):
            for owner, name in functions:
                setattr(owner, name, self._metered(getattr(owner, name), i))

    def _metered(self, function: Callable[..., Any], i: int) -> Callable[..., Any]:
        sums = self._sums

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                sums[2 * i] += time.thread_time() - began
                sums[2 * i + 1] += 1

        return called

    def facts(self) -> dict[str, tuple[float, int]]:
        """Return seconds and calls of each part."""
        return {name: (self._sums[2 * i], int(self._sums[2 * i + 1])) for i, name in enumerate(PARTS)}


def main() -> None:
    """Run, and say what was metered."""
    meters = _Meters()
    meters.put()
    run()
    print(json.dumps(meters.facts()))


if __name__ == "__main__":
    main()
