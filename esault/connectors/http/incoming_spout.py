"""The base of the sources that ask a web service, in a thread beside the data loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

from esault.connectors.http.incoming import Incoming
from esault.connectors.http.service import Service
from esault.errors import SourceError
from esault.topology.spout import EndOfStream, Spout

__all__ = ["IncomingSpout"]

K = TypeVar("K")


class IncomingSpout(Spout[K, Any]):
    """Gives what a coroutine has put into `_incoming`, which `open` makes. `_fill`: the coroutine, started by the first read."""

    extra: ClassVar[str] = "http"

    def __init__(self, service: Service) -> None:
        self._service, self._who = service, service.who
        self._incoming: Incoming | None = None
        self._started = False

    def _fill(self, incoming: Incoming) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    def _start(self) -> Incoming:
        assert self._incoming is not None
        if not self._started:
            self._started = True
            self._incoming.start(self._fill(self._incoming))
        return self._incoming

    def check(self) -> None:
        """Raises SourceError where aiohttp is missing or the host has no address."""
        self._service.check(SourceError)

    def read(self, limit: int) -> list[tuple[K, Any]]:
        """Return rows that have come."""
        rows = self._start().take(limit)
        if rows is None:
            raise EndOfStream
        return rows

    def halt(self) -> None:
        """Ask no more; what has come is still read."""
        assert self._incoming is not None
        self._started = True
        self._incoming.halt()

    def lag(self) -> int:
        """Return the number of rows that wait."""
        return 0 if self._incoming is None else len(self._incoming)

    def close(self) -> None:
        """Ask no more."""
        if self._incoming is not None:
            self._incoming.close()
