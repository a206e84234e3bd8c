"""A view that prints nothing on standard output, which is for the result of a run alone."""

from __future__ import annotations

import sys
from collections.abc import Callable

from esault.control.report.summary import Snapshot

__all__ = ["QuietView"]


class QuietView:
    """Keeps notices, and calls `step` with a snapshot a few times a second while tuples flow."""

    def __init__(self, step: Callable[[Snapshot], None] | None = None) -> None:
        self._step = step
        self.notices: list[str] = []

    def line(self, mark: str, text: str) -> None:
        """Something that a process printed."""
        print(f"[{mark}] {text}", file=sys.stderr)

    def notice(self, text: str) -> None:
        """Something that the user should know."""
        self.notices.append(text)
        print(text, file=sys.stderr)

    def update(self, snapshot: Snapshot) -> None:
        """Take how things stand."""
        if self._step is not None and snapshot.phase == "running":
            self._step(snapshot)
