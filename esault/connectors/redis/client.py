"""Connections to Redis: how they are made, what their errors mean, and the wait for a server that is away."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from esault.connectors.shown_url import password_remedy, without_password
from esault.errors import EsaultError
from esault.tls_refused import tls_refused
from esault.topology.error_policy import Backoff

__all__ = ["Client", "library"]

T = TypeVar("T")
#: seconds that one attempt to connect may take
CONNECT_WITHIN = 5
#: seconds in which a server that was away must give a sign of life before anything else is asked
_SIGN_WITHIN = 1.0
#: waits between attempts; how many there are is decided by the time
_AGAIN = Backoff()
#: seconds that a server has for an answer before anything starts: one that is asked for a TLS that it does not speak says nothing
_ANSWER_ONCE_WITHIN = 15.0
_logger = logging.getLogger(__name__)
#: errors of a server that may answer later: it loads its data, runs a long script, or hands over to another
_LATER = ("LOADING", "BUSY", "READONLY", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS")


def library(who: str, error: type[EsaultError]) -> Any:
    """Return redis-py. Raises `error`, naming the extra."""
    try:
        import redis
    except ImportError:
        raise error(f"{who} needs redis-py: pip install 'esault[redis]'") from None
    return redis


class Client:
    """One connection, made when it is needed, and again where it is lost.

    A server that is away is waited for: it is said once, it is asked again after waits that grow, and `patience` seconds later it is an
    error. `answer_within`: seconds that one command may take.
    """

    def __init__(
        self,
        who: str,
        error: type[EsaultError],
        url: str,
        patience: float,
        answer_within: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._who, self._error, self._url, self._patience = who, error, url, patience
        self._answer_within, self._clock, self._sleep = answer_within, clock, sleep
        self._connection: Any = None
        #: while the server is away: when that becomes an error, how often it was asked, and when to ask again
        self._until: float | None = None
        self._tries, self._next = 0, 0.0

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            connection.connection_pool.disconnect()

    def once(self, work: Callable[[Any], T]) -> T:
        """Return `work(connection)`, without waiting for a server that is away. Raises the error in plain words."""
        redis = library(self._who, self._error)
        try:
            return work(self._connected(redis, min(self._answer_within, _ANSWER_ONCE_WITHIN)))
        except redis.RedisError as error:
            self.close()
            raise self._said(redis, error) from error

    def run(self, work: Callable[[Any], T]) -> T:
        """Return `work(connection)`, again where it was lost: what it does must be the same when it is done twice."""
        while True:
            done, found = self.attempt(work)
            if done:
                return found  # type: ignore[return-value]
            self._sleep(max(0.0, self._next - self._clock()))

    def attempt(self, work: Callable[[Any], T]) -> tuple[bool, T | None]:
        """Return (True, `work(connection)`), or (False, None) while the server is away, without waiting for it."""
        redis = library(self._who, self._error)
        now = self._clock()
        if self._until is not None and now < self._next:
            return False, None
        try:
            if self._until is not None:
                self._ask_for_a_sign(redis)
            found = work(self._connected(redis))
        except redis.RedisError as error:
            self.close()
            if not _passes(redis, error) or (self._until is not None and now >= self._until):
                raise self._said(redis, error) from error
            if self._until is None:
                self._until, self._tries = now + self._patience, 0
                _logger.warning("%s waits for the server: %s", self._who, _first_line(error))
            self._next = min(self._until, now + _AGAIN.wait(self._tries, random.random()))
            self._tries += 1
            return False, None
        if self._until is not None:
            self._until = None
            _logger.warning("%s goes on: the server answers", self._who)
        return True, found

    def _connected(self, redis: Any, answer_within: float | None = None) -> Any:
        if self._connection is None:
            within = answer_within or self._answer_within
            self._connection = self._made(redis, min(CONNECT_WITHIN, within), within)
        return self._connection

    def _ask_for_a_sign(self, redis: Any) -> None:
        """Raise where it does not answer at once: one that stands still holds up who asks, which may be a data loop."""
        connection = self._made(redis, _SIGN_WITHIN, _SIGN_WITHIN)
        try:
            connection.ping()
        finally:
            connection.close()
            connection.connection_pool.disconnect()

    def _made(self, redis: Any, connect_within: float, answer_within: float) -> Any:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        try:
            return redis.Redis.from_url(
                self._url,
                protocol=2,  # one shape of answers in all versions
                socket_connect_timeout=connect_within,
                socket_timeout=answer_within,
                retry=Retry(NoBackoff(), 0),  # here it is said, and counted
                client_name="esault",
            )
        except ValueError as error:
            if remedy := password_remedy(self._url):
                raise self._error(f"{self._who}: url={self._shown}: it has no host; {remedy}") from None
            raise self._error(f"{self._who}: url={self._shown}: {error}; write redis://localhost:6379/0") from None

    @property
    def _shown(self) -> str:
        """The URL without its password."""
        return without_password(self._url)

    def _said(self, redis: Any, error: Any) -> EsaultError:
        text = _first_line(error)
        if isinstance(error, redis.AuthenticationError) or text.startswith(("NOAUTH", "WRONGPASS")) or "AUTH " in text:
            hint = "; give the right user and password in the url: redis://user:password@host:6379"
        elif isinstance(error, redis.exceptions.NoPermissionError) or text.startswith("NOPERM"):
            hint = "; grant it with ACL SETUSER, or take another user"
        elif text.startswith("WRONGTYPE"):
            hint = "; that key is no stream: take another name, or delete it"
        elif "DB index" in text:
            hint = "; name another database in the url: redis://host:6379/0"
        elif isinstance(error, redis.exceptions.OutOfMemoryError):  # redis-py takes "OOM" from the text
            hint = "; raise maxmemory or trim the stream (maxlen=...), then go on with --resume"
        elif text.startswith("MISCONF"):
            hint = "; free space on the server's disk, then go on with --resume"
        elif (remedy := _tls(text)) is not None:
            hint = f"; {remedy}"
        elif _passes(redis, error) and self._url.startswith("rediss:"):
            hint = f"; start the server, mend host and port in url={self._shown}, or write redis:// if it does not speak TLS there"
        elif _passes(redis, error):
            hint = f"; start the server, or mend host and port in url={self._shown}"
        else:
            hint = ""
        return self._error(f"{self._who}: {text}{hint}")


def _passes(redis: Any, error: Any) -> bool:
    """Return whether the same may work later: no server, a lost connection, one that is starting or busy."""
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError)):
        return False
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
        return not str(error).startswith(("NOAUTH", "WRONGPASS", "NOPERM")) and _tls(str(error)) is None
    # redis-py takes the first word from the text of those that have a class
    later = (redis.exceptions.ReadOnlyError, redis.exceptions.MasterDownError, redis.exceptions.TryAgainError)
    return isinstance(error, later) or str(error).startswith(_LATER)


def _tls(text: str) -> str | None:
    return tls_refused(text, "redis://", "?ssl_ca_certs=PATH in the url")


def _first_line(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
