"""The search for frames that were lost at the end of a channel, where no later frame shows the gap.

A sender says in its status how many frames it has sent to whom, a receiver how many it has seen of whom. What a receiver with
nothing in its inbox has not seen a while after it was sent will not come: the channel is broken. Two looks must find it so,
with nothing seen between them: a process that was frozen, or had no processor for a second, says what it saw before it has read on.

Between hosts a link may be cut for as long as the driver bears without giving a host up, and TCP, where it doubles its pauses, tries
again after up to twice that time, or four times if that try is lost as well; statuses go another way and are there before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from esault.control.units.unit import Unit

__all__ = ["LostFrames"]

#: seconds between two looks, and from a sender's count to the receiver's that must contain it
EVERY = 1.0
#: ... where they are on different hosts: four times the silence after which a host is given up
FAR = 10.0


class LostFrames:
    """A memory of what had been sent, until it has been seen."""

    def __init__(self) -> None:
        self._next_at = 0.0
        #: (receiver, sender) -> (channel number, frames sent, when the sender said so)
        self._sent: dict[tuple[int, int], tuple[int, int, float]] = {}
        #: (receiver, sender) -> (frames seen, when the receiver said so), where the last look missed some
        self._missed: dict[tuple[int, int], tuple[int, float]] = {}

    def find(
        self, units: Mapping[str, Unit], hosts: Mapping[int, str], now: float
    ) -> Iterator[tuple[Unit, int, int, str]]:
        """Yield (unit, receiver, sender, text) of each channel with a lost tail, once a second. `hosts`: by incarnation."""
        if now < self._next_at:
            return
        self._next_at = now + EVERY
        before, self._sent = self._sent, {}
        missed, self._missed = self._missed, {}
        for unit in units.values():
            for receiver in unit.subs:
                got = unit.measurements.last(receiver)
                for sender, (name, number) in unit.senders.known.items():
                    said = units[name].measurements.last(sender)
                    if got is None or said is None:
                        continue
                    seen = got.seen.get(sender, 0)
                    channel, sent, at = before.get((receiver, sender), (0, 0, 0.0))
                    if channel != number or seen >= sent:
                        self._sent[receiver, sender] = (number, said.sent.get(receiver, 0), said.now)
                        continue
                    self._sent[receiver, sender] = (channel, sent, at)
                    near = hosts.get(receiver) == hosts.get(sender)
                    if got.rows.backlog or got.now < at + (EVERY if near else FAR):
                        continue
                    earlier, then = missed.get((receiver, sender), (-1, 0.0))
                    if earlier == seen and got.now > then:
                        del self._sent[receiver, sender]
                        yield unit, receiver, sender, f"{sent - seen} frames at the end are missing"
                    else:
                        self._missed[receiver, sender] = (seen, got.now)
