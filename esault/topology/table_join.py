"""The bolt behind `orders.join_table("enriched", customers)`: it keeps the newest value of the table's side per key."""

from __future__ import annotations

from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt

__all__ = ["LEFT", "MISSING", "TABLE", "UNMATCHED", "TableJoin", "check_missing"]

#: what `process_stream` calls the two sides, which may come from one unit
LEFT, TABLE = "left", "table"
#: the stream of tuples that found no value
UNMATCHED = "unmatched"
#: what may become of a tuple whose key has no value
MISSING = ("none", "drop", "wait")
#: tuples of one key that wait at most, where it is not said
WAIT_MOST = 1000


class TableJoin(Bolt[Any, Any, Any, Any]):
    """Each tuple of the left side goes out as `(value, newest value of the table)`. None as a table's value takes the key out of it.

    Tuples wait in the order in which they came; those that have waited too long for `most`, and those that still wait when the key's life
    is over, go to the stream "unmatched", as those do that are dropped.
    """

    # Slots, so that an object is small: there may be millions.
    __slots__ = ("missing", "most", "newest", "waiting")

    def __init__(self, missing: str, most: int) -> None:
        self.missing = missing
        self.most = most
        self.newest: Any = None
        self.waiting: list[Any] = []

    def process_stream(self, stream: str, key: Any, value: Any) -> None:
        """A tuple of the left side, or a new value of the table."""
        if stream == TABLE:
            self.newest = value
            if value is None and not self.waiting:
                self.clear_state()
            elif value is not None and self.waiting:
                waiting, self.waiting = self.waiting, []
                for left in waiting:
                    self.emit(key, (left, value))
        elif self.newest is not None or self.missing == "none":
            self.emit(key, (value, self.newest))
        elif self.missing == "drop":
            self.emit(key, value, stream=UNMATCHED)
        else:
            self.waiting.append(value)
            if len(self.waiting) > self.most:
                self.emit(key, self.waiting.pop(0), stream=UNMATCHED)

    def finish(self) -> None:
        """No value came."""
        waiting, self.waiting = self.waiting, []
        for left in waiting:
            self.emit(self.key, left, stream=UNMATCHED)

    def __getstate__(self) -> dict[str, Any]:
        return {"newest": self.newest, "waiting": self.waiting}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.newest = state["newest"]
        self.waiting = list(state["waiting"])


def check_missing(where: str, missing: object, wait_most: object) -> int:
    """Return the number of tuples of a key that may wait. Raises TopologyError."""
    if missing not in MISSING:
        raise TopologyError(
            f"{where}: missing={missing!r} says what becomes of a tuple whose key the table does not have yet: 'none' pairs it with "
            "None, 'drop' sends it to the stream 'unmatched', 'wait' keeps it until the table has the key"
        )
    if wait_most is None:
        return WAIT_MOST
    if missing != "wait":
        raise TopologyError(
            f"{where}: wait_most={wait_most!r} is for missing='wait', and nothing waits with {missing!r}; leave it out"
        )
    if isinstance(wait_most, bool) or not isinstance(wait_most, int) or wait_most < 1:
        raise TopologyError(f"{where}: wait_most={wait_most!r} must be a whole number of tuples per key from 1 on")
    return wait_most
