"""Connections to NATS in a thread of their own: how they are made, what their errors mean, and the wait for a server that is away.

It is one module of over 300 lines: a connection, its loop and what may be wrong with it go together.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from esault.background import BackgroundLoop
from esault.connectors.nats.tls import NoTlsError, over_tls
from esault.connectors.shown_url import password_remedy, without_password
from esault.errors import EsaultError, TopologyError
from esault.tls_refused import tls_refused
from esault.topology.arguments import listed

__all__ = ["ANSWER_WITHIN", "Client", "Server", "Stream", "library", "server"]

T = TypeVar("T")
#: seconds that a connection or an answer may take
ANSWER_WITHIN = 5.0
#: seconds that the end of a connection that did not come about may take
_CLOSED_WITHIN = 2.0
_SCHEMES = ("nats://", "tls://", "ws://", "wss://")
#: attempts for which a stream may be missing: a server that starts may not know it yet
_MISSING = 7


class Server(NamedTuple):
    """The place of a server, and how to be let in."""

    urls: list[str]
    credentials: str | None
    domain: str | None
    options: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """The URLs without their passwords."""
        return ", ".join(without_password(url).partition("://")[2] for url in self.urls)


def server(
    who: str,
    servers: str | Iterable[str],
    credentials: str | None,
    domain: str | None,
    options: Mapping[str, Any] | None,
) -> Server:
    """Return where to connect to. Raises TopologyError."""
    urls = listed(servers)
    if not urls or not all(isinstance(url, str) and url.startswith(_SCHEMES) for url in urls):
        shown = ", ".join(map(without_password, urls))
        raise TopologyError(f"{who}: servers={shown}: write nats://localhost:4222, tls://..., or a list of such")
    for url in urls:
        if remedy := password_remedy(url):
            raise TopologyError(f"{who}: servers={without_password(url)}: it has no host; {remedy}")
    if options is not None and not isinstance(options, Mapping):
        raise TopologyError(f"{who}: options={options!r}: write a dict of arguments of nats-py's connect")
    return Server(urls, credentials, domain, dict(options or {}))


def library(who: str, error: type[EsaultError]) -> Any:
    """Return the package nats, with its errors loaded. Raises `error`, naming the extra."""
    try:
        import nats
        import nats.errors
        import nats.js.errors
    except ImportError:
        raise error(f"{who} needs nats-py: pip install 'esault[nats]'") from None
    return nats


class Stream(NamedTuple):
    """The facts of a stream at one moment."""

    #: when it was made: one that was made anew under its name is another
    created: str
    first: int
    last: int
    #: messages between first and last that are gone
    deleted: int
    config: Mapping[str, Any]


class Client:
    """One connection, and the event loop that it lives in. Nothing of it is made before it is asked for the first time.

    What is a coroutine runs in that loop. `who` is in all that is said. A server that is away is said once, and that it is back.
    """

    def __init__(self, who: str, error: type[EsaultError], server: Server) -> None:
        self.who, self.error, self._server = who, error, server
        self.say: Callable[[str], None] = logging.getLogger(__name__).warning
        self.api = f"$JS.{server.domain}.API" if server.domain else "$JS.API"
        self._loop: BackgroundLoop | None = None
        self._connection: Any = None
        self._connecting: asyncio.Lock | None = None
        self._away = False
        #: called when a connection is lost, with the reason
        self.lost: set[Callable[[Exception], None]] = set()
        #: called with what the server refuses beside its answers, such as a subject that the user may not publish to
        self.refused: set[Callable[[Exception], None]] = set()
        #: what was refused of that which requests need, so that they have no answer
        self._unanswered: Exception | None = None
        #: bytes of headers and data of a message that the server takes at most; None before it has told
        self.max_payload: int | None = None

    # from any thread -----------------------------------------------------------------------------

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin with it in the loop."""
        if self._loop is None:
            self._loop = BackgroundLoop()
        return self._loop.submit(work)

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a question, without waiting for a server that is away. Raises the error in plain words."""
        library(self.who, self.error)

        async def asked() -> T:
            try:
                return await question(self)
            except EsaultError:
                raise
            except Exception as wrong:
                raise self.said(wrong) from wrong

        return self.submit(asked()).result()

    def close(self) -> None:
        """Let go of the connection and its thread; it may be asked again."""
        if self._loop is not None:
            self._loop.submit(self._leave()).result()
            self._loop.close()
            self._loop = self._connecting = None

    # in the loop ---------------------------------------------------------------------------------

    async def connected(self) -> Any:
        """Return the connection, made anew where it was lost."""
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Any:
        nats = library(self.who, self.error)
        met: list[Exception] = []
        self._unanswered = None

        async def wrong(error: Exception) -> None:
            met.append(error)
            if "permissions" in str(error).lower():
                if any(each in str(error).lower() for each in ("$js.", "subscription")):
                    self._unanswered = error
                for hear in list(self.refused):
                    hear(error)

        async def closed() -> None:
            for wake in list(self.lost):
                wake(_reason(connection.last_error))

        options = {
            "name": f"esault {self.who}",
            "connect_timeout": ANSWER_WITHIN,
            **({"user_credentials": self._server.credentials} if self._server.credentials else {}),
            **self._server.options,
            # What is lost is found out, and made anew, by those who use it.
            "allow_reconnect": False,
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0.01,
            "error_cb": wrong,
            "closed_cb": closed,
        }
        connection = over_tls(nats) if any(url.startswith("tls:") for url in self._server.urls) else nats.NATS()
        try:
            await asyncio.wait_for(connection.connect(list(self._server.urls), **options), 2 * ANSWER_WITHIN)
        except Exception as error:
            with suppress(
                Exception
            ):  # it leaves its socket open; where TLS has failed it waits for an end that does not come
                await asyncio.wait_for(connection.close(), _CLOSED_WITHIN)
            tls = next((each for each in (*met, error) if isinstance(each, (ssl.SSLError, NoTlsError))), None)
            if tls is not None:
                raise tls from None
            if isinstance(error, (nats.errors.NoServersError, asyncio.TimeoutError)):
                raise (met[-1] if met else ConnectionError("no answer")) from None
            raise
        self.max_payload = connection.max_payload
        return connection

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if not connection.is_closed:
                await connection.close()
            await asyncio.sleep(0)  # its socket is closed one turn later, also where it was lost just now

    async def stream(self, name: str) -> Stream:
        """Return the facts of a stream."""
        info = await self.request(f"STREAM.INFO.{name}")
        state = info["state"]
        # One that has never had a message has first_seq 0; one that has lost all has one behind its last.
        first = max(1, state["first_seq"])
        return Stream(info["created"], first, state["last_seq"], state.get("num_deleted", 0), info["config"])

    async def request(self, what: str, **arguments: Any) -> Any:
        """Return JetStream's answer. Raises nats-py's APIError."""
        import json

        nats = library(self.who, self.error)
        connection = await self.connected()
        data = json.dumps(arguments).encode() if arguments else b""
        try:
            answer = json.loads((await connection.request(f"{self.api}.{what}", data, timeout=ANSWER_WITHIN)).data)
        except asyncio.TimeoutError:
            if self._unanswered is not None:
                raise self._unanswered from None
            raise
        if "error" in answer:
            raise nats.js.errors.APIError.from_error(answer["error"])
        return answer

    def away(self, error: Exception, missing: int) -> int:
        """Say once that the server is away. Raises where waiting does not help.

        `missing`: how often in a row the stream was not there; return that, with this time.
        """
        missing = missing + 1 if _code(error) == 404 else 0
        if not passes(error) and not 0 < missing < _MISSING:
            if isinstance(error, EsaultError):
                raise error
            raise self.said(error) from error
        if not self._away:
            self._away = True
            self.say(f"{self.who} waits for the server at {self._server.shown}: {_words(error)}")
        return missing

    def back(self) -> None:
        """Say that the server is back, if it was away."""
        if self._away:
            self._away = False
            self.say(f"{self.who} goes on: the server at {self._server.shown} answers")

    # errors --------------------------------------------------------------------------------------

    def said(self, error: Exception) -> EsaultError:
        """Return the error in plain words, with a remedy."""
        if isinstance(error, EsaultError):
            return error
        text = _words(error)
        remedy = (
            tls_refused(str(error), "nats://", "SSL_CERT_FILE in the environment")
            if isinstance(error, ssl.SSLError)
            else None
        )
        if remedy is not None:
            hint = f"; {remedy}"
        elif isinstance(error, NoTlsError):
            hint = f"; correct the port of {self._server.shown}, or write nats:// in servers"
        elif "uthoriz" in text or "uthentic" in text or "credentials" in text:
            hint = "; give the right user and password in servers (nats://user:password@host:4222), or the right credentials"
        elif "permissions" in text.lower():
            hint = "; allow it for this user in the server's configuration, or take another user"
        elif "maximum payload" in text:
            hint = "; write smaller values, or raise max_payload in the server's configuration"
        elif "control line" in text:
            hint = "; take shorter subjects, or raise max_control_line in the server's configuration"
        elif _code(error) == 404:
            hint = "; make it (nats stream add), or correct its name"
        elif _is_no_jetstream(error):
            hint = f"; start the server at {self._server.shown} with JetStream: nats-server -js, or correct domain"
            text = "the server has no JetStream here"
        elif isinstance(error, (OSError, ConnectionError, asyncio.TimeoutError)):
            hint = f"; start the server, or mend servers={self._server.shown}"
            text = text or "no answer"
        else:
            hint = ""
        return self.error(f"{self.who}: {text}{hint}")


def passes(error: Exception) -> bool:
    """Return whether the same may work later: no server, a lost connection, JetStream that is starting."""
    import nats.errors

    if isinstance(error, ssl.SSLError) and tls_refused(str(error), "", "") is not None:
        return False
    if isinstance(error, EsaultError):
        return isinstance(error.__cause__, ConnectionError)
    lost = (
        OSError,
        asyncio.TimeoutError,
        nats.errors.ConnectionClosedError,
        nats.errors.ConnectionReconnectingError,
        nats.errors.StaleConnectionError,
        nats.errors.OutboundBufferLimitError,
    )
    return isinstance(error, lost) or _is_no_jetstream(error) or _code(error) in (500, 503)


def _reason(error: Exception | None) -> Exception:
    """Return why a connection has ended: what the server has said where the same message would end the next one as well."""
    text = str(error).lower()
    if error is not None and ("maximum payload" in text or "maximum control line" in text):
        return type(error)(text)
    return ConnectionError("the connection is lost")


def _is_no_jetstream(error: Exception) -> bool:
    import nats.errors
    import nats.js.errors

    return isinstance(
        error,
        (nats.errors.NoRespondersError, nats.js.errors.ServiceUnavailableError, nats.js.errors.NoStreamResponseError),
    )


def _code(error: Exception) -> int | None:
    return getattr(error, "code", None)


def _words(error: Exception) -> str:
    text = getattr(error, "description", None) or str(error) or type(error).__name__
    return text.removeprefix("nats: ").strip("'")
