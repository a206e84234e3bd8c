"""The times that all went back to a checkpoint: why, and how long it took until tuples flowed again."""

from __future__ import annotations

from dataclasses import dataclass

from esault.messages.checkpoint import CompletedCheckpoint

__all__ = ["Recovery", "Restored"]

#: times that all go back without a checkpoint completed in between
MOST_IN_VAIN = 3
#: seconds that a process has to get ready after all went back, and bytes of state that each second more is for
READY_PATIENCE, LOADED_PER_SECOND = 60.0, 1 << 20


@dataclass
class Restored:
    """One time that all went back."""

    at: float
    #: the checkpoint; 0: the beginning
    number: int
    why: str
    #: until tuples flowed again; None while it lasts
    seconds: float | None = None


class Recovery:
    """All times of a run."""

    def __init__(self) -> None:
        self.all: list[Restored] = []
        #: since the last complete checkpoint
        self.in_vain = 0
        #: until when all must be ready
        self._ready_by = 0.0

    def begin(
        self,
        number: int,
        why: str,
        now: float,
        completed: CompletedCheckpoint | None = None,
        counted: bool = True,
    ) -> str | None:
        """Note that all go back now, to `completed`, and return None; or return the reason not to.

        `counted`: it is one of those of which there may not be too many in a row.
        """
        self.in_vain += counted
        loading = 0 if completed is None else completed.total_size / LOADED_PER_SECOND
        self._ready_by = now + READY_PATIENCE + loading
        if counted and self.in_vain > MOST_IN_VAIN:
            return f"{MOST_IN_VAIN} times in a row everything went back to a checkpoint and none was completed since: {why}"
        if (
            self.lasting is not None
        ):  # one more death on the way back: it takes until all flows, from the first death on
            self.lasting.why += f"; {why}"
            self.lasting.number = number  # another one where that was damaged
        else:
            self.all.append(Restored(now, number, why))
        return None

    def late(self, now: float) -> bool:
        """Return whether all should be ready by now."""
        return self.lasting is not None and now > self._ready_by

    @property
    def lasting(self) -> Restored | None:
        """The one that is on."""
        return self.all[-1] if self.all and self.all[-1].seconds is None else None

    def flowing(self, now: float) -> None:
        """Note that tuples flow again."""
        if self.lasting is not None:
            self.lasting.seconds = now - self.lasting.at

    def completed(self) -> None:
        """Note that a checkpoint is complete."""
        self.in_vain = 0
