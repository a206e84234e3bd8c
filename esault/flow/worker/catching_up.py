"""The moment at which a spout has caught up: what was there when it was opened is processed, and spouts that are read after it begin."""

from __future__ import annotations

from collections.abc import Callable

from esault.flow.delivery.roots import Roots
from esault.flow.worker.spout_reader import SpoutReader

__all__ = ["CatchingUp"]


class CatchingUp:
    """Looks at a spout that others wait for, until it has caught up. `say` is called then, once, and once more behind `again`."""

    def __init__(self, reading: SpoutReader, roots: Roots, say: Callable[[], object]) -> None:
        self._reading = reading
        self._roots = roots
        self._say = say
        #: the number of the first root behind those with which it has caught up
        self._root: int | None = None
        self._over = False

    def again(self) -> None:
        """Look anew, and say so anew: there is more to read."""
        self._root, self._over = None, False

    def look(self) -> None:
        """Ask the spout, and then see whether what it has read is processed. Raises UserError."""
        if self._over:
            return
        if self._root is None:
            if not self._reading.caught_up():
                return
            self._root = self._roots.next_number
        if self._roots.done_before(self._root):
            self._over = True
            self._say()
