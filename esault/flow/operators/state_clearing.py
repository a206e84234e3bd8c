"""`clear_state`: an object asks that the state of its key be forgotten."""

from __future__ import annotations

from typing import Any

from esault.flow.operators.elements import Elements
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.watermark.key_timers import KeyTimers
from esault.routing.ring import canonical
from esault.topology.bolt import Bolt

__all__ = ["StateClearing"]


class StateClearing:
    """Takes objects out of `elements`, with their timers, while a call of theirs runs.

    The next tuple of the key finds none and makes one, so nothing is asked behind each call. `cleared` has those that are
    still to be closed when their call is over.
    """

    #: runs batches in place of calls, if there is one
    hot: HotLoop | None = None

    def __init__(self, elements: Elements, timers: KeyTimers | None) -> None:
        self._elements, self._timers = elements, timers
        #: identity -> object
        self.cleared: dict[int, Any] = {}

    def members(self) -> dict[str, Any]:
        """Return the method of the user's objects."""

        def clear_state(element: Any) -> None:
            self._clear(element)

        clear_state.__qualname__ = clear_state.__name__  # as Python names it for a call with the wrong arguments
        return {"clear_state": clear_state}

    def _clear(self, element: Any) -> None:
        key = element.key if hasattr(element, "key") else None
        name = key if type(key) is str else canonical(key)
        if not self._elements.take_out(name, element):
            if id(element) not in self.cleared:
                Bolt.clear_state(element)  # which says where it works
            return
        if self._timers is not None:
            self._timers.pop(name)
        if self.hot is not None:
            self.hot.look_up_anew()
        self.cleared[id(element)] = element
