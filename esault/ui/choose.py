"""Which view a run has."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from esault.runtime.session import View

__all__ = ["choose"]


@contextlib.contextmanager
def choose(plain: bool) -> Iterator[View]:
    """The live view on a terminal, lines elsewhere."""
    if plain or not sys.stdout.isatty():
        from esault.ui.plain import PlainView

        yield PlainView()
        return
    from esault.ui.live import LiveView

    view = LiveView()
    try:
        yield view
    finally:
        view.close()
