"""The state of an element as bytes, put back into another one, and what is not let into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.errors import EsaultError, FrameError, PayloadError, StateError
from esault.flow.operators.element_resources import RESOURCES, find_resources, set_by_open, without_resources
from esault.flow.operators.user_error import say_hook
from esault.payload.codec import Codec, explain
from esault.payload.state_columns import get_columns
from esault.topology.bolt import Bolt

__all__ = ["check_own_names", "keeps_state", "pack_state", "put_state", "state_columns"]


def pack_state(unit: str, element: Any, codec: Codec) -> bytes:
    """The element's state, as it moves and is saved, without resources. Raises StateError naming the attribute."""
    try:
        state = element.__getstate__()
    except Exception as error:
        say_hook(error, "__getstate__")
        raise
    if RESOURCES:
        state = without_resources(element, state)
    try:
        return codec.pack_value(state, element)
    except PayloadError as error:
        if find_resources(element, state):
            return pack_state(unit, element, codec)
        if isinstance(state, dict):
            for name, value in state.items():
                reason = explain(value, element)
                if reason is not None:
                    raise StateError(
                        f"unit {unit!r}: attribute {name!r} of {type(element).__name__} cannot be saved or moved: "
                        f"{_with_remedy(reason, name, element)}"
                    ) from None
        raise StateError(
            f"unit {unit!r}: the state of {type(element).__name__} (its __getstate__()) cannot be saved or moved: {error}"
        ) from None


def state_columns(elements: Sequence[Any]) -> tuple[tuple[str, ...], list[Sequence[Any]]] | None:
    """The states of elements of one class as the names of their attributes and a column for each; None where each is to be packed by
    itself."""
    cls = type(elements[0])
    own = getattr(cls, "__getstate__", None) is not Bolt.__getstate__ or cls.__setstate__ is not Bolt.__setstate__
    return None if own or RESOURCES else get_columns(elements)


def _with_remedy(reason: str, name: str, element: Any) -> str:
    """Return why an attribute is refused, and where to keep what is no state."""
    cls = type(element)
    if name in set_by_open(cls):  # so its user takes it for no state, and may be right
        reason = reason.replace(", make it in open(context)", "").replace("make it in open(context), or ", "")
        return (
            f"{reason}. {cls.__name__}.open sets it, and process may change it: where it is no state, such as a model that only predicts, "
            f"return it from open_shared(self, context), once for all keys, and use self.context.shared in place of self.{name}"
        )
    return (
        f"{reason}. What is no state, such as a model that only predicts, is returned by open_shared(self, context): self.context.shared has "
        "it"
    )


def check_own_names(unit: str, element: Any, key: Any) -> None:
    """Refuse an object outside windows that has set what is the engine's, and would not move. Raises EsaultError."""
    if element.key != key:
        raise EsaultError(
            f"unit {unit!r}: {type(element).__name__} sets self.key, which is the engine's; use another name"
        )


def keeps_state(element: Any) -> bool:
    """Return whether there is state to save. One that cannot say it keeps some: it is refused where it is saved, not counted."""
    try:
        return bool(element.__getstate__())
    except Exception:
        return True


def put_state(unit: str, element: Any, state: bytes, codec: Codec) -> None:
    """Put a packed state into an element fresh from the factory. Raises StateError, or what its `__setstate__` raises."""
    try:
        found = codec.unpack(state, element)
    except FrameError as error:
        raise StateError(f"unit {unit!r}: the state of {type(element).__name__} cannot be restored: {error}") from None
    if type(element).__setstate__ is Bolt.__setstate__ and type(found) is not dict:
        if found is None:
            return  # it keeps nothing
        raise StateError(
            f"unit {unit!r}: {type(element).__name__}.__getstate__ returns a {type(found).__name__}, and nothing puts that back: return a "
            "dict of attributes, or define __setstate__(self, state)"
        )
    element.__setstate__(found)
