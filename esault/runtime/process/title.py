"""The title that `ps` and `top` show for a process of a run, as `esault word-count count/2`."""

from __future__ import annotations

import logging

__all__ = ["set_title"]


def set_title(title: str) -> bool:
    """Give this process its title; False (and a debug line) when the package `setproctitle` cannot be imported."""
    try:
        from setproctitle import setproctitle
    except ImportError:
        logging.getLogger(__name__).debug("process title %r not set: setproctitle is not installed", title)
        return False
    setproctitle(title)
    return True
