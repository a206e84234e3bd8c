"""The part of a sub-unit that deals with watermarks; one that has none to do with does without it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from esault.flow.send.outputs import Outputs
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.flow.watermark.merging import Merging
from esault.flow.worker.watermark_sender import WatermarkSender
from esault.topology.plan import UnitPlan

__all__ = ["Watermarks", "watermarks"]


class Watermarks:
    """Watermarks that come in, and those that go out. They stand still while keys move to or from here."""

    def __init__(self, plan: UnitPlan, outputs: Outputs) -> None:
        self.merging = Merging()
        targets = sorted(plan.watermark_targets & set(plan.targets))
        self._telling = WatermarkSender(outputs, targets) if targets else None
        #: up to which all that is to be emitted has been: what receivers are told
        self.passed = BEGINNING
        #: keys move, or did until so many batches have been taken
        self._frozen = False
        self._frozen_until: int | None = None
        self._left = False
        #: since when there has been nothing to do
        self._quiet_since: float | None = None

    # keys that move ----------------------------------------------------------------------------

    def hold(self, change: int, now: float) -> None:
        """Hold the watermark back: this sub-unit is to get keys."""
        self._freeze()
        if self._telling is not None:
            self._telling.hold(change, now)

    def gave(self, change: int, news: Sequence[int], now: float) -> None:
        """Hold the watermark back: this sub-unit is to give keys to these."""
        self._freeze()
        self.merging.given = max(self.merging.given, change)
        if self._telling is not None:
            self._telling.gave(change, news, now)

    # splits that move ---------------------------------------------------------------------------

    def expect_splits(self, handover: int, now: float) -> None:
        """Hold the watermark back: splits will go on here."""
        if self._telling is not None:
            self._telling.hold(handover, now)

    def took_splits(self) -> None:
        """Go on: all splits that were to come are here."""
        if self._telling is not None:
            self._telling.released()
            self._telling.count_all()

    def gave_splits(self, handover: int, to: int, now: float) -> None:
        """Have receivers believe this sub-unit only once they have heard from the one that goes on with splits."""
        if self._telling is not None:
            self._telling.gave(handover, (to,), now)

    def living(self, incarnations: Container[int]) -> None:
        """Set which sub-units live."""
        if self._telling is not None:
            self._telling.living(incarnations)

    def leave(self) -> None:
        """Let no watermark pass any more: all keys go, and others know more of time from now on."""
        self._left = True

    def _freeze(self) -> None:
        self._frozen, self._frozen_until = True, None

    # what came in ------------------------------------------------------------------------------

    def advance(self, taken: int, waiting: int, moving: bool) -> bool:
        """Note that so many batches have been taken and so many wait; return whether the watermark may be acted upon."""
        if moving:
            self._freeze()
            return False
        if self._left:
            return False
        if self._frozen:
            if self._frozen_until is None:
                # What was read meanwhile came behind rows that were held: it counts behind all that is here now.
                self._frozen_until = taken + waiting
                self.merging.wait(self._frozen_until)
            if waiting and taken < self._frozen_until:
                return False
            self._frozen = False
            if self._telling is not None:
                self._telling.released()
        self.merging.through(taken, not waiting)
        return True

    # what goes out -----------------------------------------------------------------------------

    def times(self) -> dict[str, float]:
        """Return how far event time has come, by the receiving unit."""
        return {} if self._telling is None else self._telling.times()

    def tell(self, now: float, quiet: bool, ended: bool, held: Mapping[str, float] | None = None) -> None:
        """Tell receivers what is to be told; `quiet`: there is nothing to read, `ended`: there never will be.

        `held`: event time from which on rows may come again, by the receiving unit.
        """
        if not quiet:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        if self._telling is not None:
            idle = self.merging.idle and self.passed >= self.merging.current
            self._telling.tell(now, (self.passed, idle), self._quiet_since, ended, held, self.merging.furthest)

    def over(self, now: float) -> None:
        """Say that nothing will ever come from here."""
        if self._telling is not None:
            self._telling.over(now)

    @property
    def known(self) -> float | None:
        """The time up to which all has been emitted; None: nothing is known yet, or time is over."""
        return self.passed if BEGINNING < self.passed < END_OF_TIME else None

    @property
    def wake_at(self) -> float:
        """The time at which something is to be told, even if nothing comes in."""
        return END_OF_TIME if self._telling is None else self._telling.wake_at


def watermarks(plan: UnitPlan, outputs: Outputs) -> Watermarks | None:
    """Return the watermarks of a unit that needs them; None: it does not."""
    return Watermarks(plan, outputs) if plan.watermarks or plan.watermark_targets else None
