"""RabbitMQ's stream protocol, as far as a publisher needs it: one connection that waits for its answers.

https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbitmq_stream/docs/PROTOCOL.adoc
"""

from __future__ import annotations

import io
import itertools
import socket
import ssl
import struct
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

from esault.connectors.shown_url import password_remedy, without_password
from esault.errors import EsaultError, TopologyError
from esault.tls_refused import tls_refused

__all__ = ["Confirmed", "StreamAddress", "StreamClient", "StreamRefusedError", "stream_failure"]

_SCHEMES = {"rabbitmq-stream": False, "rabbitmq-stream+tls": True}
_DECLARE_PUBLISHER, _PUBLISH, _CONFIRM, _ERROR, _CREATE, _METADATA, _METADATA_UPDATE = 1, 2, 3, 4, 13, 15, 16
_PEER_PROPERTIES, _SASL_HANDSHAKE, _SASL_AUTHENTICATE, _TUNE, _OPEN, _CLOSE, _HEARTBEAT = range(17, 24)
_RESPONSE = 0x8000
_OK, _NO_STREAM, _THERE_ALREADY = 1, 2, 5
#: seconds within which the server must answer
_ANSWER_WITHIN = 15.0
#: what a response says that is no success -> its meaning, and the remedy
_CODES = {
    2: "there is no such stream: make it, say declare=True, or correct its name",
    6: "the stream is not available at this moment",
    8: "refuses the user: correct user and password in url",
    10: "refuses the user: correct user and password in url",
    12: "the user has no access to this virtual host: correct url, or give it the permission (rabbitmqctl set_permissions)",
    13: "takes users of its own machine only, such as guest: take another user",
    14: "a message is larger than a frame of the server (stream.frame_max): write smaller rows, or raise it",
    16: "the user may not: give it the permission (rabbitmqctl set_permissions), or take another user",
    17: "it is there with other properties: leave declare=True out, or have it made anew",
}
#: of these it may be another time
_LATER = frozenset({6})


class StreamRefusedError(Exception):
    """The server has answered with a code."""

    def __init__(self, code: int, what: str = "") -> None:
        said = _CODES.get(code, f"answers with code {code}")
        super().__init__(f"{what}: {said}" if what else said)
        self.code = code

    @property
    def passes(self) -> bool:
        """Return whether the same may be taken later."""
        return self.code in _LATER


class Confirmed(NamedTuple):
    """Publishing ids that the server has, or has refused with `code`."""

    publisher: int
    ids: tuple[int, ...]
    code: int = _OK


class StreamAddress(NamedTuple):
    """A server, as `rabbitmq-stream://user:password@host:5552/%2F` says it; rabbitmq-stream+tls is TLS."""

    host: str
    port: int
    user: str
    password: str
    vhost: str
    tls: bool

    @classmethod
    def of(cls, who: str, url: Any) -> StreamAddress:
        """Return it. Raises TopologyError."""
        try:
            parts = urlsplit(url) if isinstance(url, str) else None
        except ValueError:  # brackets that are no address
            parts = None
        if parts is None or parts.scheme not in _SCHEMES or not parts.hostname:
            raise TopologyError(
                f'{who}: url={without_password(url)}: write "rabbitmq-stream://user:password@host:5552/%2F", or rabbitmq-stream+tls:// '
                "for TLS"
            )
        try:
            port = parts.port
        except ValueError:
            remedy = password_remedy(url) or "write a number as its port, such as 5552"
            raise TopologyError(f"{who}: url={without_password(url)}: {remedy}") from None
        tls = _SCHEMES[parts.scheme]
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        vhost = unquote(parts.path[1:]) or "/"
        return cls(parts.hostname, port or (5551 if tls else 5552), user, password, vhost, tls)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}{'' if self.vhost == '/' else '/' + self.vhost}"


class StreamClient:
    """One connection. Errors are OSError where it is lost or the server is away, StreamRefusedError where it refuses."""

    def __init__(self, address: StreamAddress) -> None:
        """Connect and log in."""
        self._numbers = itertools.count(1)
        self._confirmed: list[Confirmed] = []
        self.frame_max = 1 << 20
        plain = socket.create_connection((address.host, address.port), timeout=_ANSWER_WITHIN)
        self._socket: socket.socket = plain
        self._input: BinaryIO = io.BytesIO()
        try:
            if address.tls:
                self._socket = ssl.create_default_context().wrap_socket(plain, server_hostname=address.host)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._input = self._socket.makefile("rb")
            self._ask(_PEER_PROPERTIES, struct.pack(">i", 1) + _text("product") + _text("eSault"))
            self._ask(_SASL_HANDSHAKE, b"")
            login = f"\0{address.user}\0{address.password}".encode()
            self._ask(_SASL_AUTHENTICATE, _text("PLAIN") + struct.pack(">i", len(login)) + login)
            key, body = self._frame()
            while key != _TUNE:
                key, body = self._frame()
            self.frame_max, self.heartbeat = struct.unpack_from(">II", body)
            self.frame_max = self.frame_max or 1 << 20
            self._send(_TUNE, body[:8])
            self._ask(_OPEN, _text(address.vhost), address.vhost)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        self._input.close()  # as long as it is open, so is the socket
        self._socket.close()

    def missing(self, streams: Sequence[str]) -> list[str]:
        """Return which of these streams are not there."""
        body = self._ask(_METADATA, struct.pack(">i", len(streams)) + b"".join(map(_text, streams)), coded=False)
        at = 4
        (brokers,) = struct.unpack_from(">i", body, at)
        at += 4
        for _ in range(brokers):
            (length,) = struct.unpack_from(">h", body, at + 2)
            at += 4 + length + 4
        (count,) = struct.unpack_from(">i", body, at)
        at += 4
        missing = []
        for _ in range(count):
            (length,) = struct.unpack_from(">h", body, at)
            name = body[at + 2 : at + 2 + length].decode()
            code, _leader, replicas = struct.unpack_from(">HHi", body, at + 2 + length)
            at += 2 + length + 8 + 2 * replicas
            if code == _NO_STREAM:
                missing.append(name)
        return missing

    def create(self, stream: str) -> None:
        """Make a stream, unless it is there."""
        try:
            self._ask(_CREATE, _text(stream) + struct.pack(">i", 0), f"stream {stream!r}")
        except StreamRefusedError as error:
            if error.code != _THERE_ALREADY:
                raise

    def declare_publisher(self, number: int, reference: str, stream: str) -> None:
        """Begin to publish to a stream; what has this reference and a publishing id that was there before is dropped by the server."""
        self._ask(
            _DECLARE_PUBLISHER, struct.pack(">B", number) + _text(reference) + _text(stream), f"stream {stream!r}"
        )

    def publish(self, number: int, messages: Iterable[tuple[int, bytes]]) -> None:
        """Send messages by their publishing ids, in one frame."""
        parts = [struct.pack(">QI", id, len(data)) + data for id, data in messages]
        self._send(_PUBLISH, struct.pack(">Bi", number, len(parts)) + b"".join(parts))

    def confirmed(self) -> list[Confirmed]:
        """Wait until something is confirmed or refused, and return that."""
        while not self._confirmed:
            self._take(*self._frame())
        found, self._confirmed = self._confirmed, []
        return found

    def beat(self) -> None:
        """Say that this side is there."""
        self._send(_HEARTBEAT, b"")

    def _send(self, key: int, body: bytes) -> None:
        self._socket.sendall(struct.pack(">IHH", len(body) + 4, key, 1) + body)

    def _ask(self, key: int, body: bytes, what: str = "", coded: bool = True) -> bytes:
        """Return what is answered, behind the number of the question."""
        number = next(self._numbers)
        self._send(key, struct.pack(">I", number) + body)
        while True:
            came, answer = self._frame()
            if came == key | _RESPONSE and answer[:4] == struct.pack(">I", number):
                break
            self._take(came, answer)
        if coded:
            (code,) = struct.unpack_from(">H", answer, 4)
            if code != _OK:
                raise StreamRefusedError(code, what)
        return answer

    def _take(self, key: int, body: bytes) -> None:
        if key == _CONFIRM:
            publisher, count = struct.unpack_from(">Bi", body)
            self._confirmed.append(Confirmed(publisher, struct.unpack_from(f">{count}Q", body, 5)))
        elif key == _ERROR:
            publisher, count = struct.unpack_from(">Bi", body)
            for id, code in struct.iter_unpack(">QH", body[5 : 5 + 10 * count]):
                self._confirmed.append(Confirmed(publisher, (id,), code))
        elif key in (_METADATA_UPDATE, _CLOSE):
            raise ConnectionResetError("the server gives the stream up, or the connection")

    def _frame(self) -> tuple[int, bytes]:
        """Return the next frame's key and body."""
        while True:
            head = self._input.read(8)
            if len(head) < 8:
                raise ConnectionResetError("the server has hung up")
            size, key, _version = struct.unpack(">IHH", head)
            body = self._input.read(size - 4)
            if len(body) < size - 4:
                raise ConnectionResetError("the server has hung up")
            if key != _HEARTBEAT:
                return key, body


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def stream_failure(kind: type[EsaultError], who: str, address: StreamAddress, error: Exception) -> EsaultError:
    """Return the error in plain words, with the remedy; where it may pass by itself a ConnectionError is its cause."""
    if isinstance(error, StreamRefusedError):
        return kind(f"{who}: {address} {error}" if "refuses" in str(error) else f"{who}: {address}: {error}")
    authority = "SSL_CERT_FILE in the environment"
    remedy = tls_refused(str(error), "rabbitmq-stream://", authority) if isinstance(error, ssl.SSLError) else None
    if remedy is not None:
        return kind(f"{who}: {address}: {error}; {remedy}")
    said = kind(
        f"{who}: {address} does not answer ({error}); see that RabbitMQ runs with its plugin for streams (rabbitmq-plugins enable "
        "rabbitmq_stream), and that url names its port (5552 by default)"
    )
    said.__cause__ = ConnectionError(str(error))
    return said
