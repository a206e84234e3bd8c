"""The level at which a program's run logs, while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from esault.errors import UsageError

__all__ = ["LEVELS", "at_level"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_lock = threading.Lock()
#: what the runs of now have asked for
_asked: list[int] = []
#: the root logger's own level, while there are some
_own = logging.WARNING


@contextmanager
def at_level(level: str | None) -> Iterator[None]:
    """Have the root logger log at `level`, as processes that are forked meanwhile do; None: as it is.

    Of several at once the one holds that says most. The last one that ends gives the logger its own level back. Raises UsageError.
    """
    if level is None:
        yield
        return
    if level not in LEVELS:
        raise UsageError(f"log_level={level!r}: it is one of {', '.join(LEVELS)}")
    number = LEVELS[level]
    global _own
    with _lock:
        if not _asked:
            _own = logging.root.level
        _asked.append(number)
        logging.root.setLevel(min(_asked))
    try:
        yield
    finally:
        with _lock:
            _asked.remove(number)
            logging.root.setLevel(min(_asked, default=_own))
