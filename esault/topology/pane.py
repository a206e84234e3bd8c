"""Panes: the results of one window, where it has several. Early ones, the one that is on time, and late ones."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ONLY_PANE", "Pane"]


class Pane(NamedTuple):
    """A result of a window, as `self.pane` of a bolt in `finish`."""

    #: "early", before its end; "on_time", when the watermark or the clock has reached it; "late", behind that
    kind: str
    #: from 0, of the panes of this window and key
    index: int  # type: ignore[assignment]  # a tuple's own `index` finds values
    #: no other one comes; where late tuples may still change the result only the pane of `last_pane=True` says so
    is_last: bool

    @property
    def is_first(self) -> bool:
        """Return whether it is the first one of this window and key."""
        return self.index == 0


#: that of a window which has one result
ONLY_PANE = Pane("on_time", 0, True)
