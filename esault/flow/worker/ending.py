"""The end of a sub-unit: elements are finished, own roots and sinks are done, END is sent; and at last it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from esault.flow.delivery.acks import Acks
from esault.flow.delivery.roots import Roots
from esault.flow.operators.user_error import failure_text
from esault.flow.send.outputs import Outputs
from esault.flow.worker.frame_reader import FrameReader
from esault.flow.worker.phase import Event, Lifecycle, Phase
from esault.flow.worker.watermarks import Watermarks
from esault.messages.control import Ended, Finished, Stopped
from esault.messages.status import Status

__all__ = ["Ending"]


class Ending:
    """The way of a sub-unit from the end of its input to END, step by step between other work."""

    def __init__(
        self,
        *,
        incarnation: int,
        unit: str,
        lifecycle: Lifecycle,
        reader: FrameReader,
        roots: Roots,
        acks: Acks,
        outputs: Outputs,
        watermarks: Watermarks | None,
        take_steps: Callable[[Iterator[None]], tuple[bool, bool]],
        tracked: bool,
        clock: Callable[[], float],
        say: Callable[[Any], None],
    ) -> None:
        """`take_steps` takes some of the steps of finishing and sends what they emit.

        It returns whether it could take any, and whether all are taken. `tracked`: roots are acked; `say` takes messages for
        the unit.
        """
        self._incarnation = incarnation
        self._unit = unit
        self._lifecycle = lifecycle
        self._reader = reader
        self._roots = roots
        self._acks = acks
        self._outputs = outputs
        self._watermarks = watermarks
        self.take_steps = take_steps
        self._tracked = tracked
        self._clock = clock
        self._say = say
        self._steps: Iterator[None] = iter(())
        #: true while calls of user code are open
        self.open_calls: object = None

    def input_ended(self) -> None:
        """Tell the unit that nothing more will come."""
        self._lifecycle.on(Event.INPUT_ENDED)
        self._say(Ended(self._incarnation))

    def begin(self, steps: Iterator[None]) -> None:
        """Finish elements; each of the steps may emit."""
        self._steps = steps

    def advance(self) -> bool:
        """Go a step further, and return whether there is more to do at once."""
        phase = self._lifecycle.phase
        if phase is Phase.FINISHING:
            # Rows that were carried here by a change may still wait, for a call of their key or by a rate: finish comes behind them.
            if self._moving or self._reader.unfinished or (self._tracked and not self._roots.credit):
                return False
            worked, over = self.take_steps(self._steps)
            if over and not self.open_calls:
                self._lifecycle.on(Event.ELEMENTS_FINISHED)
                return True
            return worked
        return phase is Phase.COMMITTING and not self._moving and self._commit()

    @property
    def _moving(self) -> bool:
        """True while rows or state are on their way to or from here."""
        handover = self._reader.handover
        return handover is not None and handover.active

    def _commit(self) -> bool:
        if self._tracked and self._roots.replay_one(self._clock()):
            return True
        if self._roots.open_count or self._outputs.sinks.uncommitted:
            return False
        self._acks.send()
        if not self._acks.retry():
            return False  # others' roots wait for these acks: they must go before this sub-unit may
        if self._watermarks is not None:
            self._watermarks.over(self._clock())
        self._outputs.end(self._clock())
        self._lifecycle.on(Event.END_SENT)
        self._say(Finished(self._incarnation))
        return True

    def stop(
        self,
        at_once: bool,
        close_objects: Callable[[], None],
        fail: Callable[[str, BaseException | None], None],
        status: Callable[[], Status],
    ) -> None:
        """Close objects and sinks, and say the last word, once; `at_once`: without a commit before."""
        lifecycle = self._lifecycle
        if lifecycle.phase is Phase.STOPPED:
            return
        if not at_once and lifecycle.phase is not Phase.FAILED:
            try:
                self._outputs.sinks.finish()
                self._acks.send()
            except Exception as error:
                fail(failure_text(self._unit, error), error)
        close_objects()
        for text in self._outputs.sinks.close():
            if lifecycle.phase is not Phase.FAILED:
                fail(text, None)
        lifecycle.on(Event.STOP)
        self._say(Stopped(self._incarnation, status()))
