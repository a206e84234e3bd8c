"""StreamMine3G's way to move an operator, to compare eSault's own move with.

After Sousa's dissertation (2014), 3.2.4. A copy y of x is made elsewhere and both are sent every event from some
moment on; y only queues. Once x has processed all that came before that moment it stops; its state and how far it
came go to y, which drops what x did of its queue, and runs.
"""

from __future__ import annotations

__all__ = ["Migration"]


class Migration:
    """One move, by the sequence numbers of one input.

    Raises ValueError for a step that would lose or repeat an event.
    """

    def __init__(self, done: int, copied_from: int) -> None:
        """`done`: the last that x has processed; `copied_from`: the first that goes to x and to y."""
        self.done = done
        self.copied_from = copied_from
        self.queue: list[int] = []
        self.stopped = False

    def arrives(self, number: int) -> None:
        """An event comes; y queues it, and so does x while it runs."""
        if number < self.copied_from:
            raise ValueError(f"event {number} goes to x alone: to both go those from {self.copied_from} on")
        self.queue.append(number)

    def processed(self, number: int) -> None:
        """X has processed one more."""
        if self.stopped:
            raise ValueError(f"x has stopped: it cannot process event {number}")
        self.done = number

    @property
    def may_copy(self) -> bool:
        """Whether nothing lies between what x has processed and what y queued.

        Printed the other way round, which would lose events.
        """
        return self.copied_from <= self.done + 1

    def stop(self) -> None:
        """X stops, and its state is copied."""
        if not self.may_copy:
            raise ValueError(
                f"events {self.done + 1} to {self.copied_from - 1} would be lost: x has not processed them yet"
            )
        self.stopped = True

    def left_for_copy(self) -> list[int]:
        """What y must process of its queue, in order."""
        return [number for number in self.queue if number > self.done]
