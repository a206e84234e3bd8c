"""The ack servers of a run by number, and the sub-units that were told where acks go (docs/explanation/delivery.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from esault.messages.control import AckRouting, Build, Fork, Kill, Stop

__all__ = ["AckerAssignment"]


class AckerAssignment:
    """The ack servers: it has them forked and told of, and finds when roots that a dead one tracked may start anew."""

    def __init__(self, number: int, new_build: Callable[..., Build], outbox: deque[tuple[Any, Any]]) -> None:
        """`number` of ack servers; 0: the owner of a root tracks its acks."""
        self._number = number
        self._new_build = new_build
        self._outbox = outbox
        #: ack servers by number: incarnation, and its endpoint once it is built
        self._ackers: list[tuple[int, str | None]] = []
        self._version = 0
        #: version of the AckRouting that named the newest ack server, and the sub-units that have not confirmed it
        self._awaited = 0
        self._unrouted: set[int] = set()
        #: numbers of ack servers whose death waits for that
        self._lost: set[int] = set()

    def start(self) -> None:
        """Have them forked."""
        for number in range(self._number):
            self._fork(number)

    def _fork(self, number: int) -> None:
        build = self._new_build("", part=number)
        if number < len(self._ackers):
            self._ackers[number] = (build.incarnation, None)
        else:
            self._ackers.append((build.incarnation, None))
        self._outbox.append(("keeper", Fork(build)))

    @property
    def ready(self) -> bool:
        """Return whether all can be reached."""
        return all(endpoint is not None for _, endpoint in self._ackers)

    def built(self, incarnation: int, endpoint: str) -> None:
        """Note the endpoint of an ack server that can be reached now."""
        self._ackers = [(i, endpoint if i == incarnation else known) for i, known in self._ackers]

    def tell(
        self,
        owners: Mapping[int, str],
        widest: int,
        filling: Mapping[str, int],
        newcomer: bool = False,
        down: tuple[int, ...] = (),
        mergers: tuple[int, ...] = (),
    ) -> None:
        """Tell all where acks go; `newcomer`: an ack server took the place of a dead one. The rest: see `AckRouting`."""
        self._version += 1
        if newcomer:
            self._awaited = self._version
            self._unrouted = set(owners)
        ackers = tuple((i, endpoint or "") for i, endpoint in self._ackers)
        message = AckRouting(self._version, owners, ackers, widest, filling, down, mergers)
        for incarnation in [*owners, *(i for i, endpoint in self._ackers if endpoint is not None)]:
            self._outbox.append((incarnation, message))

    def routed(self, incarnation: int, version: int) -> None:
        """Note that a sub-unit sends its acks by this version."""
        if version >= self._awaited:
            self._unrouted.discard(incarnation)

    def recovered(self, living: Iterable[int]) -> list[int]:
        """Return the numbers of lost ack servers to which no living sub-unit sends any more; each is told once."""
        self._unrouted &= set(living)
        if not self._lost or self._unrouted or not self.ready:
            return []
        lost, self._lost = sorted(self._lost), set()
        return lost

    def number_of(self, incarnation: int) -> int | None:
        """Return the number of a living ack server; None if it is none."""
        return next((number for number, (acker, _) in enumerate(self._ackers) if acker == incarnation), None)

    def died(self, incarnation: int) -> int | None:
        """Have a dead one replaced; its number, None if it is none."""
        number = self.number_of(incarnation)
        if number is not None:
            self._lost.add(number)
            self._fork(number)
        return number

    def kill(self) -> None:
        """End all at once; `start` makes others."""
        for incarnation, _ in self._ackers:
            self._outbox.append(("keeper", Kill(incarnation)))
        self._ackers.clear()
        self._unrouted.clear()
        self._lost.clear()

    def stop(self) -> None:
        """Have all leave."""
        for incarnation, endpoint in self._ackers:
            if endpoint is not None:
                self._outbox.append((incarnation, Stop(True)))
