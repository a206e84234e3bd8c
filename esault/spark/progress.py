"""Says every few seconds how far Spark is."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["progress"]

#: seconds between two lines
EVERY = 3.0
#: where there are no tasks, since Spark plans or the tables are being written down, a line comes after so many seconds
STILL = 15.0


@contextlib.contextmanager
def progress(spark: SparkSession, what: str, say: Callable[[str], None], every: float = EVERY) -> Iterator[None]:
    """`say` how many tasks of the stages that run are done, as long as the block lasts."""
    over = threading.Event()
    began = time.monotonic()

    def watch() -> None:
        said = began
        while not over.wait(every):
            line = ""
            # a session that is ending, or is no classic one, has nothing to tell
            with contextlib.suppress(Exception):
                line = _line(spark.sparkContext.statusTracker())
            now = time.monotonic()
            if not line and now - said >= STILL:
                line = "between tasks"
            if line and not over.is_set():
                said = now
                say(f"  {what}: {line}, {now - began:.0f} s")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(every)


def _line(tracker: Any) -> str:
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
    total = sum(stage.numTasks for stage in stages if stage is not None)
    return f"{done} of {total} tasks" if total else ""
