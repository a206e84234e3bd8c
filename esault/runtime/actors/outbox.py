"""One frozen process must not hold up what goes to the others.

Thespian counts what it has sent and what no one has taken yet over all addresses together, and stops at a limit; one
process that does not read fills it. Here at most one transmission per address is under way; what comes meanwhile waits
in that address's own box and goes in one `Bundle` next: order is kept per address, no address waits for another, and
a burst costs a few transmissions. A plain class: it is given the way to transmit, and does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from esault.value_class import value_class

__all__ = ["Bundle", "Outboxes", "Transmit"]

#: waiting for one address; more means that it will never be read there
MAX_WAITING = 10_000
#: in one transmission
MAX_BUNDLE = 512


@value_class(frozen=True)
class Bundle:
    """Messages for one address, in order: each pickled, or itself where it cannot be pickled yet."""

    items: tuple[Any, ...]

    def __str__(self) -> str:
        # Thespian asks for it with each message, for a log that is off: kilobytes of pickles as text.
        return f"a bundle of {len(self.items)}"


class Transmit(Protocol):
    """Start one transmission; `done(delivered)` is called once, at once or later, in the same thread."""

    def __call__(self, address: Any, items: tuple[Any, ...], done: Callable[[bool], None]) -> None: ...


@dataclass
class _Box:
    key: Hashable
    address: Any
    waiting: list[Any] = field(default_factory=list)
    under_way: int = 0
    draining: bool = False


class Outboxes:
    """A box per address. `lost(address, number)` is told of messages that could not be delivered."""

    def __init__(self, transmit: Transmit, lost: Callable[[Any, int], None], max_waiting: int = MAX_WAITING) -> None:
        self._transmit, self._lost, self._max_waiting = transmit, lost, max_waiting
        self._boxes: dict[Hashable, _Box] = {}

    def __len__(self) -> int:
        """Return the number of addresses that have something under way or waiting."""
        return len(self._boxes)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._boxes

    def waiting(self, key: Hashable) -> int:
        """Return the number of messages that wait for this address, those under way left out."""
        box = self._boxes.get(key)
        return len(box.waiting) if box else 0

    def post(self, key: Hashable, address: Any, item: Any) -> None:
        """Send an item, now or behind what is under way. `key` stands for the address, which need not be hashable."""
        box = self._boxes.get(key)
        if box is None:
            box = self._boxes[key] = _Box(key, address)
        elif len(box.waiting) >= self._max_waiting:
            number, box.waiting = len(box.waiting), []
            self._lost(address, number)
        box.waiting.append(item)
        self._drain(box)

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Hand what is under way and waits for `old` to `new`: the address has become known under another key."""
        box = self._boxes.get(old)
        if box is not None and new not in self._boxes:
            del self._boxes[old]
            box.key = new
            self._boxes[new] = box

    def _drain(self, box: _Box) -> None:
        # a loop, not a recursion: `done` may be called from within `transmit`
        if box.draining:
            return
        box.draining = True
        try:
            while box.waiting and not box.under_way:
                items, box.waiting = tuple(box.waiting[:MAX_BUNDLE]), box.waiting[MAX_BUNDLE:]
                box.under_way = len(items)
                self._transmit(box.address, items, lambda delivered: self._done(box, delivered))
        finally:
            box.draining = False
        if not box.waiting and not box.under_way:
            self._boxes.pop(box.key, None)

    def _done(self, box: _Box, delivered: bool) -> None:
        number, box.under_way = box.under_way, 0
        if not delivered:
            self._lost(box.address, number)
        self._drain(box)
