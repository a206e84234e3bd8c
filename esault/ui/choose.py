"""The choice of a run's view."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from esault.runtime.session.request import View
from esault.ui.shielded import ShieldedView

__all__ = ["choose"]


@contextlib.contextmanager
def choose(plain: bool) -> Iterator[View]:
    """The live view on a terminal, lines elsewhere."""
    chosen: View
    if plain or not sys.stdout.isatty():
        from esault.ui.plain import PlainView

        chosen = PlainView()
    else:
        from esault.ui.live import LiveView

        chosen = LiveView()
    view = ShieldedView(chosen)
    try:
        yield view
    finally:
        view.close()
