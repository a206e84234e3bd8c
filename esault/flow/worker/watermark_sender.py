"""Watermarks on their way out: behind the rows they cover, and no more often than is of use."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from esault.flow.channel.channel import OutChannel
from esault.flow.channel.frame import WATERMARK
from esault.flow.send.outputs import Outputs
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.flow.watermark.merging import Word

__all__ = ["TELL_EVERY", "WatermarkSender"]

#: what is said to all: a word but for what concerns its receiver
_Said = tuple[float, bool, int, tuple[tuple[int, int], ...]]
#: seconds between two words to a receiver
TELL_EVERY = 0.005


class WatermarkSender:
    """A record of what each receiver was told, and the rules of what it is told next."""

    def __init__(self, outputs: Outputs, targets: Sequence[str]) -> None:
        self._outputs = outputs
        self._targets = targets
        #: newest change in which this sub-unit gets keys, and whether that is on
        self._held = 0
        self._getting = False
        #: new owner of keys from here -> the newest change in which it got some
        self._news: dict[int, int] = {}
        #: what was told last, of all, and the channels it went to
        self._told: object = None
        self._channels: list[OutChannel] | None = None
        self._next = 0.0
        #: target -> the furthest watermark that was found for it, and which of its clocks were idle and have not caught up
        self._said: dict[str, float] = {}
        self._out: dict[str, set[int]] = {}
        #: target -> the last of it before the end of time
        self._last: dict[str, float] = {}
        #: when there is something to be told
        self.wake_at = END_OF_TIME

    def hold(self, change: int, now: float) -> None:
        """Tell all at once that keys come: what comes with them may be older than what was said here."""
        self._held, self._getting = max(self._held, change), True
        self._all(now)

    def count_all(self) -> None:
        """Count also what was idle and has not caught up: it comes with what others have waited for."""
        self._out.clear()

    def gave(self, change: int, news: Sequence[int], now: float) -> None:
        """Tell all at once that keys go: what is said from now on counts only once the new owners hold back."""
        self._news.update(dict.fromkeys(news, change))
        self._all(now)

    def living(self, incarnations: Container[int]) -> None:
        """Name none of the new owners that are gone: no receiver waits for their word, and a run may have had thousands."""
        for gone in [each for each in self._news if each not in incarnations]:
            del self._news[gone]

    def released(self) -> None:
        """Tell the own watermark again: all that came with the keys has been processed."""
        self._getting = False

    def _all(self, now: float) -> None:
        for target in self._targets:
            for channel in self._outputs.of(target):
                # Of its own watermark it says less than it could, which is no harm; the next word is of that again.
                self._say(channel, (BEGINNING, False, self._held, tuple(self._news.items())), now)
        self._told = None
        self._next = now

    def times(self) -> dict[str, float]:
        """Return how far event time has come, by the receiving unit, held back or not."""
        return dict(self._said)

    def tell(
        self,
        now: float,
        own: tuple[float, bool],
        quiet_since: float | None,
        ended: bool,
        held: Mapping[str, float] | None = None,
        furthest: float = BEGINNING,
    ) -> None:
        """Tell all receivers, if there is news and it is time. `own`: this sub-unit's watermark, and whether it is idle.

        `held`: what no receiver may be told to be past, since rows from there on may come again. `furthest`:
        where the own watermark was before time was over.
        """
        words: dict[str, _Said] = {}
        self.wake_at = END_OF_TIME
        fences = tuple(self._news.items())
        for target in self._targets:
            value, idle = self._of(target, now, own, quiet_since)
            self._last[target] = max(self._last.get(target, BEGINNING), value if value < END_OF_TIME else furthest)
            if self._getting:
                value, idle = BEGINNING, False
            elif ended:
                value = END_OF_TIME
            elif held is not None:
                value, idle = min(value, held.get(target, BEGINNING)), False
            words[target] = (value, idle, self._held, fences)
        if words == self._told and self._channels is self._outputs.channels:
            return
        if now < self._next:
            self.wake_at = min(self.wake_at, self._next)
            return
        self._next = now + TELL_EVERY
        if self._tell(words, now):
            self._told, self._channels = words, self._outputs.channels
        else:
            self.wake_at = min(self.wake_at, self._next)

    def _tell(self, words: Mapping[str, _Said], now: float) -> bool:
        """Send these words, and return whether all of them could be sent."""
        clear = True
        for target, said in words.items():
            for channel in self._outputs.of(target):
                if channel.told == (*said, channel.gave):
                    continue
                if channel.queue:
                    clear = False  # what stands in its way would only be joined by ever more of these
                else:
                    self._say_last(target, channel, said, now)
        return clear

    def _say(self, channel: OutChannel, said: _Said, now: float) -> None:
        word: Word = (*said, channel.gave)
        channel.flush(now)
        channel.put(WATERMARK, word)
        channel.told = word

    def _say_last(self, target: str, channel: OutChannel, said: _Said, now: float) -> None:
        """Say a word; before that time is over, up to where it came: what is done at the end follows from it."""
        last, told = self._last.get(target, BEGINNING), channel.told
        known = type(told) is tuple and told[0] == END_OF_TIME
        if said[0] == END_OF_TIME and last > BEGINNING and not known:
            self._say(channel, (last, *said[1:]), now)
        self._say(channel, said, now)

    def over(self, now: float) -> None:
        """Say that nothing will ever come from here: before END, which also ends the way to one that leaves."""
        for target in self._targets:
            for channel in self._outputs.of(target):
                self._say_last(target, channel, (END_OF_TIME, False, self._held, tuple(self._news.items())), now)

    def _of(self, target: str, now: float, own: tuple[float, bool], quiet_since: float | None) -> tuple[float, bool]:
        """Return the watermark, the least of those that are not idle, and False; if all are idle, the furthest and True.

        One that was idle and comes back behind what was said meanwhile is left out until it has caught up.
        """
        busy: list[float] = []
        idle: list[float] = []
        said, out = self._said.get(target, BEGINNING), self._out.setdefault(target, set())
        clocks = self._outputs.clocks[target]
        for number, clock in enumerate(clocks):
            if clock is None:
                value, is_idle = own
            else:
                value, is_idle, changes_at = clock.stand(now, quiet_since)
                self.wake_at = min(self.wake_at, changes_at)
            if is_idle:
                out.add(number)
                idle.append(value)
            elif number not in out or not BEGINNING < value < said:
                out.discard(number)
                busy.append(value)
        if busy or len(idle) < len(clocks):
            found = min(busy, default=said), False
        else:
            found = max(idle), True
        self._said[target] = max(said, found[0])
        return found
