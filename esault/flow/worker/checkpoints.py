"""The checkpoints of one sub-unit: its part of each, from the last mark that comes in to the commit of its sinks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from esault.errors import CheckpointError
from esault.flow.send.outputs import Outputs
from esault.flow.worker.frame_reader import FrameReader
from esault.flow.worker.phase import Lifecycle, Phase
from esault.messages.checkpoint import NotSnapped, Piece, Snapped
from esault.messages.splits import SplitPlace

__all__ = ["Checkpoints"]

#: what sinks have prepared, by the number of the checkpoint it belongs to and by name of the sink
_Handles = dict[int, dict[str, Any]]


class Checkpoints:
    """The sub-unit's part in checkpoints: it cuts at the marks, has state and sinks kept, and tells the unit."""

    def __init__(
        self,
        incarnation: int,
        lifecycle: Lifecycle,
        reader: FrameReader,
        outputs: Outputs,
        snap: Callable[[int, bool], None],
        say: Callable[[Any], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`snap` keeps the state of the moment, given the number and whether the one before is known to be complete.

        `say` takes messages for the unit; `wake` is called from any thread when `settle` has something to do.
        """
        self._incarnation = incarnation
        self._lifecycle = lifecycle
        self._reader = reader
        self._outputs = outputs
        self.snap = snap
        self._tell = say
        self._wake = wake
        self._prepared: _Handles = {}
        #: the one that was cut last
        self._last = 0
        #: the end of this sub-unit's part in it, but for what sinks prepare
        self._unsaid: Snapped | None = None
        #: pieces that are written and not durable yet, by the field of `Snapped` that they belong to
        self.writing: dict[str, Future[Piece]] = {}
        #: rows in flight of the one that was cut last
        self._in_flight: Piece | None = None
        #: the newest one that is known to be complete
        self.completed = 0

    def cut(self, now: float) -> None:
        """Send the cut on, and keep the state of this moment: all before it has been processed and nothing behind it."""
        number = self._reader.alignment.number
        assert number is not None
        self._outputs.cut(number, now, self._lifecycle.phase is Phase.FINISHED)
        self._prepared[number] = self._outputs.sinks.prepare(number, self._say)
        sure = self.completed == self._last
        self._last = number
        self._in_flight = self._unsaid = None
        self.writing = {}
        try:
            self.snap(number, sure)
        except CheckpointError as error:
            self.not_snapped(number, error)
        self._reader.release()

    def snapped(
        self,
        number: int,
        piece: Piece | Future[Piece] | None = None,
        position: bytes | None = None,
        splits: dict[str, SplitPlace] | None = None,
    ) -> None:
        """Tell the unit that this sub-unit's part is durable, once it is and sinks have prepared theirs."""
        if isinstance(piece, Future):
            self._wait_for("piece", piece)
            piece = None
        self._unsaid = Snapped(
            self._incarnation,
            number,
            piece,
            position,
            finished=self._lifecycle.elements_finished,
            ended=self._lifecycle.phase is Phase.FINISHED,
            in_flight=self._in_flight,
            splits=splits or {},
        )
        self._say()

    def with_in_flight(self, piece: Piece | Future[Piece]) -> None:
        """Take the rows in flight of the one that was cut last."""
        if isinstance(piece, Future):
            self._wait_for("in_flight", piece)
        else:
            self._in_flight = piece

    def _wait_for(self, field: str, piece: Future[Piece]) -> None:
        self.writing[field] = piece
        piece.add_done_callback(lambda future: self._wake())

    def settle(self) -> None:
        """Take pieces that have become durable, or cannot be made so."""
        if self._unsaid is None:
            return
        for field in [field for field, piece in self.writing.items() if piece.done()]:
            written = self.writing.pop(field)
            try:
                durable: dict[str, Any] = {field: written.result()}
                self._unsaid = replace(self._unsaid, **durable)
            except CheckpointError as error:
                number, self._unsaid = self._unsaid.number, None
                self.writing = {}
                self.not_snapped(number, error)
                return
        self._say()

    def _say(self) -> None:
        """Tell the unit, unless state is not durable yet, or a sink has not said what it prepared."""
        if self._unsaid is not None and not self.writing and not self._outputs.sinks.preparing:
            # Those before it as well: whether they were completed is not known here yet, and to commit twice does no harm.
            handles = {number: dict(by_sink) for number, by_sink in self._prepared.items() if by_sink}
            self._tell(replace(self._unsaid, handles=handles))
            self._unsaid = None

    def not_snapped(self, number: int, error: CheckpointError) -> None:
        """Tell the unit that this sub-unit's part cannot be done; the run goes on."""
        self._tell(NotSnapped(self._incarnation, number, str(error)))

    def complete(self, number: int) -> None:
        """Have sinks show what they prepared for this one and those before it. Raises what sinks raise."""
        for each in sorted(n for n in self._prepared if self.completed < n <= number):
            self._outputs.sinks.complete(each, self._prepared[each])
        self.completed = max(self.completed, number)
        self._prepared = {n: handles for n, handles in self._prepared.items() if handles or n > self.completed}
