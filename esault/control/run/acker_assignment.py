"""Where ledgers sit: the ack servers by number, and who has been told of them (PROTOCOL section 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from esault.messages.control import AckRouting, Build, Fork, Kill, Stop

__all__ = ["AckerAssignment"]


class AckerAssignment:
    """Has ack servers forked and told of, and finds when roots that sat with a dead one may start anew."""

    def __init__(self, number: int, new_build: Callable[..., Build], outbox: deque[tuple[Any, Any]]) -> None:
        """`number` of ack servers; 0: each ledger sits with the owner of its roots."""
        self._number = number
        self._new_build = new_build
        self._outbox = outbox
        #: ack servers by number: incarnation, and its endpoint once it is built
        self._seats: list[tuple[int, str | None]] = []
        self._version = 0
        #: the Seats that named the newest ack server, and who has not confirmed it
        self._awaited = 0
        self._unseated: set[int] = set()
        #: numbers of ack servers whose death waits for that
        self._lost: set[int] = set()

    def start(self) -> None:
        """Have them forked."""
        for number in range(self._number):
            self._fork(number)

    def _fork(self, number: int) -> None:
        build = self._new_build("", part=number)
        if number < len(self._seats):
            self._seats[number] = (build.incarnation, None)
        else:
            self._seats.append((build.incarnation, None))
        self._outbox.append(("keeper", Fork(build)))

    @property
    def ready(self) -> bool:
        """Whether all can be reached."""
        return all(endpoint is not None for _, endpoint in self._seats)

    def built(self, incarnation: int, endpoint: str) -> None:
        """One can be reached now."""
        self._seats = [(i, endpoint if i == incarnation else known) for i, known in self._seats]

    def tell(
        self,
        owners: Mapping[int, str],
        widest: int,
        filling: Mapping[str, int],
        newcomer: bool = False,
        down: tuple[int, ...] = (),
        mergers: tuple[int, ...] = (),
    ) -> None:
        """Tell everybody where acks go; `newcomer`: an ack server took the place of a dead one. The rest as in `AckRouting`."""
        self._version += 1
        if newcomer:
            self._awaited = self._version
            self._unseated = set(owners)
        seats = tuple((i, endpoint or "") for i, endpoint in self._seats)
        message = AckRouting(self._version, owners, seats, widest, filling, down, mergers)
        for incarnation in [*owners, *(i for i, endpoint in self._seats if endpoint is not None)]:
            self._outbox.append((incarnation, message))

    def seated(self, incarnation: int, version: int) -> None:
        """A sub-unit sends its acks by this version."""
        if version >= self._awaited:
            self._unseated.discard(incarnation)

    def recovered(self, living: Iterable[int]) -> list[int]:
        """Numbers of lost ack servers to which nobody of the living sends any more; each is told once."""
        self._unseated &= set(living)
        if not self._lost or self._unseated or not self.ready:
            return []
        lost, self._lost = sorted(self._lost), set()
        return lost

    def died(self, incarnation: int) -> int | None:
        """Have a dead one replaced; its number, None if it is none."""
        for number, (seat, _) in enumerate(self._seats):
            if seat == incarnation:
                self._lost.add(number)
                self._fork(number)
                return number
        return None

    def kill(self) -> None:
        """End all at once; `start` makes others."""
        for incarnation, _ in self._seats:
            self._outbox.append(("keeper", Kill(incarnation)))
        self._seats.clear()
        self._unseated.clear()
        self._lost.clear()

    def stop(self) -> None:
        """Have all leave."""
        for incarnation, endpoint in self._seats:
            if endpoint is not None:
                self._outbox.append((incarnation, Stop(True)))
