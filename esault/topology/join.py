"""The bolt behind `stream.join(...)`: the tuples of one key and window on either side, in pairs."""

from __future__ import annotations

from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt

__all__ = ["LEFT", "RIGHT", "Join", "check_kind"]

#: what `process_stream` is told
LEFT, RIGHT = "left", "right"
_KINDS = ("inner", "left", "outer")


def check_kind(where: str, kind: object) -> str:
    """Return the checked kind of join: which sides emit tuples without a partner. Raises TopologyError."""
    if kind not in _KINDS:
        raise TopologyError(f"{where}: kind={kind!r} is not one of {', '.join(map(repr, _KINDS))}")
    return str(kind)


class Join(Bolt[Any, Any, Any, Any]):
    """Emits `(left, right)` under the key as soon as both are there; what has no partner when the window closes goes with None."""

    __slots__ = ("kind", "left", "right")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.left: list[Any] = []
        self.right: list[Any] = []

    def process_stream(self, stream: str, key: Any, value: Any) -> None:
        """Pair it with all that the other side has so far."""
        if stream == LEFT:
            self.left.append(value)
            for other in self.right:
                self.emit(key, (value, other))
        else:
            self.right.append(value)
            for other in self.left:
                self.emit(key, (other, value))

    def finish(self) -> None:
        """The window has closed."""
        if not self.right and self.kind != "inner":
            for value in self.left:
                self.emit(self.key, (value, None))
        elif not self.left and self.kind == "outer":
            for value in self.right:
                self.emit(self.key, (None, value))

    def __getstate__(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.left, self.right = list(state["left"]), list(state["right"])
