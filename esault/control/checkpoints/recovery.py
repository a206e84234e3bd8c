"""The times that all went back to a checkpoint: why, and how long it took until tuples flowed again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Recovery", "Restored"]

#: times that all go back without a checkpoint completed in between
MOST_IN_VAIN = 3


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

    def begin(self, number: int, why: str, now: float) -> str | None:
        """Note that all go back now, and return None; or return the reason not to."""
        self.in_vain += 1
        if self.in_vain > MOST_IN_VAIN:
            return f"{MOST_IN_VAIN} times in a row everything went back to a checkpoint and none was completed since: {why}"
        if (
            self.lasting is not None
        ):  # one more death on the way back: it takes until all flows, from the first death on
            self.lasting.why += f"; {why}"
        else:
            self.all.append(Restored(now, number, why))
        return None

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
