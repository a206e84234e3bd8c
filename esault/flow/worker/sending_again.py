"""Dead letters that are sent again: roots of the sub-unit that they go out from, watched until they are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import FrameError
from esault.flow.delivery.roots import OpenRoot, Roots
from esault.flow.send.outputs import Outputs
from esault.messages.control import SendAgain, SendingBegan, SentAgain
from esault.payload.codec import Codec

__all__ = ["SendingAgain"]


class SendingAgain:
    """Sends them, and says so when what came of them is processed and, without checkpoints, committed."""

    def __init__(
        self,
        incarnation: int,
        roots: Roots,
        outputs: Outputs,
        codec: Codec,
        wants_id: bool,
        clock: Callable[[], float],
        say: Callable[[Any], None],
        cut: Callable[[], int | None],
    ) -> None:
        """`cut`: the newest checkpoint that this sub-unit has cut."""
        self._incarnation = incarnation
        self._roots, self._outputs, self._codec = roots, outputs, codec
        self._wants_id, self._clock, self._say, self._cut = wants_id, clock, say, cut
        #: number of the message, its roots that are not done, what was refused
        self.open: list[tuple[int, list[OpenRoot], tuple[tuple[str, str], ...]]] = []

    def begin(self, message: SendAgain, refusal: str) -> None:
        """Send them, or all but say why not."""
        refused: list[tuple[str, str]] = []
        begun: list[OpenRoot] = []
        for id, place, packed in message.dead_letters:
            why = refusal or self._send(id, place, packed, begun)
            if why:
                refused.append((id, why))
        self._say(SendingBegan(self._incarnation, message.number, self._cut() or 0))
        self.open.append((message.number, begun, tuple(refused)))
        self.look()

    def _send(self, id: str, place: str, packed: bytes, begun: list[OpenRoot]) -> str:
        """Send one; why it cannot be, empty where it can."""
        if not self._outputs.open_place(place):
            return "the topology has no such place any more"
        try:
            rows: Sequence[tuple[Any, Any]] = self._codec.unpack(packed)
        except FrameError as error:
            return f"its tuple cannot be read: {error}"
        keys, values = tuple([key for key, _ in rows]), tuple([value for _, value in rows])
        # The same at each try, so that a table that got it twice keeps it once.
        ids = tuple([f"{id}.{i}" for i in range(len(rows))]) if self._wants_id else None
        root = self._roots.open_beside([(place, keys, values, ids)], self._clock())
        if root is not None:
            begun.append(root)
        return ""

    def look(self) -> None:
        """Tell of those that are done by now."""
        waiting = []
        for number, roots, refused in self.open:
            if all(root.done for root in roots):
                self._say(SentAgain(self._incarnation, number, refused))
            else:
                waiting.append((number, roots, refused))
        self.open = waiting
