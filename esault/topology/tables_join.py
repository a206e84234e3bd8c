"""The bolt behind `prices.join_tables("offers", stocks)`: two tables, of which the newest values of a key make a third."""

from __future__ import annotations

from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.join import LEFT

__all__ = ["TablesJoin"]


class TablesJoin(Bolt[Any, Any, Any, Any]):
    """Emits `(left, right)`, the newest of either side, whenever one of them changes; None when there is no pair any more.

    None as a value takes the key out of its table. By kind both must be there, the left one, the right one or any.
    """

    # Slots, so that an object is small: there may be millions.
    __slots__ = ("kind", "left", "right")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.left: Any = None
        self.right: Any = None

    def process_stream(self, stream: str, key: Any, value: Any) -> None:
        """A new value of either table."""
        was = self._joined
        if stream == LEFT:
            self.left = value
        else:
            self.right = value
        if self._joined:
            self.emit(key, (self.left, self.right))
        elif was:
            self.emit(key, None)
        if self.left is None and self.right is None:
            self.clear_state()

    @property
    def _joined(self) -> bool:
        left, right, kind = self.left is not None, self.right is not None, self.kind
        if kind == "inner":
            return left and right
        return left if kind == "left" else right if kind == "right" else left or right

    def __getstate__(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.left, self.right = state["left"], state["right"]
