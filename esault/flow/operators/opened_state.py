"""State that is made in `open`, and would be lost: found with the first object, not when it is.

`open` is called whenever an object comes back: after a split, a restore, a pause. An attribute that it sets whatever came back,
and that other methods change, is as it was at the beginning each time. Programs in the style of other engines do so, where
`open` or `prepare` is called once. What `open` sets and nothing changes, such as a client or a limit that was read, is meant.
"""

from __future__ import annotations

from typing import Any

from esault.errors import PayloadError, StateError
from esault.payload.attributes import get_attributes, has_window, set_attributes
from esault.payload.codec import Codec
from esault.payload.resource import is_resource
from esault.topology.bolt import Bolt
from esault.topology.method_code import changed_by_methods

__all__ = ["OpenedState"]

#: in place of what came back
_CAME_BACK = object()
#: methods in which attributes are made
_MAKING = frozenset(("__init__", "open", "close", "__getstate__", "__setstate__"))


class OpenedState:
    """The look at the first object of an operator."""

    def __init__(self, unit: str, codec: Codec) -> None:
        self._unit, self._codec = unit, codec
        self._names: frozenset[str] = frozenset()
        #: the first object, until a tuple of it has been processed; and what `open` gave it, packed
        self._element: Any = None
        self._given: dict[str, bytes] = {}

    def look(self, element: Any, before: dict[str, Any]) -> Any:
        """Return an object to be opened on trial, whose attributes `before` have come back; None where there is nothing to try.

        `before` has the attributes of `element` from before it was opened; it is open now.
        """
        after = get_attributes(element)
        changed = {name for name, value in after.items() if name not in before or before[name] is not value}
        if not changed or type(element).__setstate__ is not Bolt.__setstate__:
            return None
        state = element.__getstate__()
        names = changed & set(state) if isinstance(state, dict) else set()
        if not names:
            return None
        try:
            trial: Any = object.__new__(type(element))
            set_attributes(trial, {**after, **dict.fromkeys(names, _CAME_BACK)})
            for slot in ("key", "window") if has_window(element) else ("key",):
                if hasattr(element, slot):
                    setattr(trial, slot, getattr(element, slot))
        except Exception:  # made in C, or by a function that hands out something else
            return None
        self._names = frozenset(names)
        return trial

    def judge(self, element: Any, trial: Any) -> None:
        """Take the outcome: `trial` was opened. Raises StateError for state that `open` sets and other methods change."""
        there = get_attributes(trial)
        self._names = frozenset(name for name in self._names if there.get(name) is not _CAME_BACK)
        changed = set(changed_by_methods(type(element), self._names, _MAKING, (Bolt, object)))
        changed = {name for name in changed if not self._is_resource(element, name)}  # it is connected anew
        if changed:
            raise self._refusal(element, min(changed))
        self._element = element
        for name in self._names:
            packed = self._packed(element, name)
            if packed is not None:
                self._given[name] = packed

    def try_again(self, element: Any) -> None:
        """Look whether processing has changed what `open` gave. Raises StateError."""
        if element is self._element:  # `open` may give another one other values, such as by its key
            for name, packed in self._given.items():
                if self._packed(element, name) != packed:
                    raise self._refusal(element, name)
        self._element = None
        self._given.clear()

    def _is_resource(self, element: Any, name: str) -> bool:
        return is_resource(getattr(element, name, None)) and self._packed(element, name) is None

    def _packed(self, element: Any, name: str) -> bytes | None:
        try:
            return self._codec.pack_value(getattr(element, name, None))
        except PayloadError:
            return None  # refused elsewhere, with its reason

    def _refusal(self, element: Any, name: str) -> StateError:
        cls = type(element).__name__
        return StateError(
            f"unit {self._unit!r}: {cls}.open sets self.{name}, which other methods change: it is state. open is called again "
            "wherever the object comes back (after a split, a restore, a pause), and would set it anew each time. Set it in "
            f"__init__: def __init__(self): self.{name} = ...; what is no state is left out of __getstate__"
        )
