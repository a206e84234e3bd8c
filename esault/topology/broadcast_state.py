"""Broadcast state: what each sub-unit of a bolt has the same of, because all of them were sent the same tuples."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["BroadcastState"]


class BroadcastState(dict[Any, Any]):
    """A dict that `process_broadcast` alone may change; to all other hooks it is read-only.

    Only the dict itself is guarded: a list in it is not, so that its values are best taken for constants.
    """

    __slots__ = ("writable",)

    def __init__(self) -> None:
        super().__init__()
        #: `process_broadcast` is at work
        self.writable = False

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def copy(self) -> dict[Any, Any]:
        """Return a plain dict of the same, which may be changed."""
        return dict(self)

    def _check(self) -> None:
        if not self.writable:
            _refuse()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self._check()
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self._check()
        return super().__ior__(other)

    def clear(self) -> None:
        """Remove all."""
        self._check()
        super().clear()

    def pop(self, *args: Any) -> Any:
        """Remove a key, and return its value."""
        self._check()
        return super().pop(*args)

    def popitem(self) -> tuple[Any, Any]:
        """Remove the newest key."""
        self._check()
        return super().popitem()

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, set to `default` if there is none."""
        self._check()
        return super().setdefault(key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Take over the items of another dict."""
        self._check()
        super().update(*args, **kwargs)

    def replace(self, items: dict[Any, Any]) -> None:
        """Not for users: have these items alone."""
        super().clear()
        super().update(items)


def _refuse() -> NoReturn:
    raise TypeError(
        "broadcast state is read-only here: every sub-unit has the same only if it follows from the tuples that all of them get. "
        "Change it in process_broadcast(self, key, value), and keep what is of a key in attributes of self"
    )
