"""The watermark of a sub-unit: the least over its senders, of what was processed."""

from __future__ import annotations

from collections import deque
from typing import Any

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME

__all__ = ["DONE", "Merging", "Word", "word"]

#: (watermark, whether the sender is idle, newest change that it takes part in as new owner, ((new owner, change), ...) it must
#: not count before, newest change in which the receiver gave keys away); `DONE` behind the last of a channel that is gone
Word = tuple[float, bool, int, tuple[tuple[int, int], ...], int]
DONE: Word = (BEGINNING, False, -1, (), 0)


def word(body: Any) -> Word | None:
    """The body of a WATERMARK, checked; None where it says nothing."""
    if type(body) is not tuple or [type(each) for each in body] != [float, bool, int, tuple, int] or body[0] != body[0]:
        return None
    if any(type(each) is not tuple or [type(x) for x in each] != [int, int] for each in body[3]):
        return None
    return body


class _Sender:
    """The words of one channel."""

    __slots__ = ("awaited", "behind", "held", "idle", "incarnation", "over", "value", "words")

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.value = BEGINNING
        self.idle = False
        #: it was idle and came back behind what had been passed by then: it is left out until it has caught up
        self.behind = False
        self.held = 0
        #: it is dead, and its successor is not known here: what it has not said holds back, since its rows come again
        self.awaited = False
        #: all that it said has been taken
        self.over = False
        #: what waits for another sender's word
        self.words: deque[Word] = deque()


class Merging:
    """The words of senders, each when all rows before it have been processed.

    A sender that is idle, or has ended, is left out; if all are idle no sender is waited for, and the furthest counts. One that was
    idle and comes back behind what was passed meanwhile is left out until it has caught up: it must not hold up all others (Flink's
    StatusWatermarkValve). A sender that gave keys away says of whom; its later words wait until the new owner has said that it holds
    back: else this watermark could pass rows of those keys that are on their way there.
    """

    def __init__(self) -> None:
        #: no row before it is expected; never goes back
        self.current = BEGINNING
        #: the furthest that a sender has said before the end of time: where that begins, also for those that ended long before
        self.furthest = BEGINNING
        #: newest change in which keys go from here
        self.given = 0
        self._senders: dict[int, _Sender] = {}
        #: (batches taken by when it counts, channel, word)
        self._unread: deque[tuple[int, int, Word]] = deque()

    def add(self, sender: int, number: int) -> None:
        """A new channel of a sender; nothing is known of it yet, so that it holds back in place of one that it may succeed."""
        known = any(each.incarnation == sender for each in self._senders.values())
        for before, each in () if known else list(self._senders.items()):  # one whose channel broke succeeds no other
            if each.awaited:
                each.awaited = False
                if each.over:
                    del self._senders[before]
                break
        self._senders[number] = _Sender(sender)

    def read(self, ticket: int, number: int, said: Word) -> None:
        """A word was read, which counts when `ticket` batches have been taken."""
        self._unread.append((ticket, number, said))

    def gone(self, ticket: int, sender: int, but: int = 0, awaited: bool = False) -> None:
        """No channel of this sender brings more, but for the one of that number. `awaited`: it has a successor, which is to come."""
        for number, each in self._senders.items():
            if each.incarnation == sender and number != but:
                each.awaited = awaited
                self.read(ticket, number, DONE)

    def wait(self, ticket: int) -> None:
        """Hold back what was read until so many batches have been taken."""
        self._unread = deque([(ticket, number, said) for _, number, said in self._unread])

    def through(self, taken: int, empty: bool) -> bool:
        """So many batches have been taken, `empty` if none is left; whether the watermark has grown."""
        unread = self._unread
        if not unread or not (empty or unread[0][0] <= taken):
            return False
        while unread and (empty or unread[0][0] <= taken):
            _, number, said = unread.popleft()
            if number in self._senders:
                self._senders[number].words.append(said)
        self._settle()
        found = self._found()
        if found <= self.current:
            return False
        self.current = found
        return True

    def _found(self) -> float:
        if not self._senders:
            return self.current
        left = [s for s in self._senders.values() if s.value < END_OF_TIME]
        busy = [s for s in left if not s.idle]
        if not busy:
            return max((s.value for s in left), default=END_OF_TIME)
        return min([s.value for s in busy if not s.behind], default=self.current)

    @property
    def unread(self) -> bool:
        """Return whether there are words that do not count yet."""
        return bool(self._unread)

    @property
    def idle(self) -> bool:
        """Return whether all senders that there are have nothing to send."""
        left = [s for s in self._senders.values() if s.value < END_OF_TIME]
        return bool(left) and all(s.idle for s in left)

    def _settle(self) -> None:
        more = True
        while more:
            more = False
            for number, sender in list(self._senders.items()):
                while sender.words and self._counts(sender.words[0]):
                    said = sender.words.popleft()
                    more = True
                    if said is DONE:
                        sender.over = True
                        if not sender.awaited:
                            del self._senders[number]
                        break
                    was_out = sender.idle or sender.behind
                    sender.value, sender.idle, held = said[:3]
                    if self.furthest < sender.value < END_OF_TIME:
                        self.furthest = sender.value
                    # One that knows nothing, or holds back, says so by the beginning of time, and must be waited for.
                    sender.behind = was_out and not sender.idle and BEGINNING < sender.value < self.current
                    sender.held = max(sender.held, held)

    def _counts(self, said: Word) -> bool:
        # A sender that has switched sends rows of keys that go from here elsewhere: nothing may close before that is known here.
        return said[4] <= self.given and all(self._holds(new, change) for new, change in said[3])

    def _holds(self, new: int, change: int) -> bool:
        """Return whether this new owner has said that it holds back for this change; one that is no sender has nothing to say."""
        return all(s.held >= change for s in self._senders.values() if s.incarnation == new)
