"""A stream of NATS JetStream as a sink."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from esault.connectors.nats.client import Client, server
from esault.connectors.nats.publisher import ID, Message, Publisher, refuse_large, takes
from esault.connectors.packed_messages import MessagePacker, unpacked
from esault.errors import SinkError, TopologyError
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["NatsSink"]

#: a header's name: a token, as HTTP has it
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: bytes of a subject: with what else stands in its line that has 4096 for the server, unless it is set to more
_LONGEST = 4_000


class NatsSink(Sink):
    """Messages of a stream of NATS JetStream, one for each row; needs `esault[nats]`.

    `subject` is one of the stream's, or a function `(key, value) -> subject`. `value_serializer`: "json", "text", "bytes", or a function
    from a value to bytes. `key_header`: the header that holds the key, as text. `headers`: a function `(key, value)` that returns more of
    them. `declare=True` makes a stream that is missing, in files, with this subject alone.

    Rows are published when they are committed, and acknowledged by the stream. A message has a Nats-Msg-Id, which the checkpoint keeps.
    What goes on from a checkpoint reads what the stream has stored since, and publishes the rest. Rows wait in memory for the checkpoint,
    and are in it.

    `servers` is a URL or a list of them, `credentials` a file of user credentials, `domain` JetStream's; `options` has any other argument of
    nats-py's `connect`. A server that is away is waited for.
    """

    wants_id: ClassVar[bool] = True
    extra: ClassVar[str] = "nats"
    delivery_guarantee: ClassVar[str] = (
        "with checkpoints each row once, by what the stream has stored since; without, rows may repeat, with the same Nats-Msg-Id"
    )

    def __init__(
        self,
        stream: str,
        subject: str | Callable[[Any, Any], str],
        servers: str | Iterable[str] = "nats://localhost:4222",
        *,
        value_serializer: Any = "json",
        key_header: str | None = None,
        headers: Callable[[Any, Any], Mapping[str, str] | None] | None = None,
        declare: bool = False,
        credentials: str | None = None,
        domain: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        who = "NatsSink"
        if not isinstance(stream, str) or not stream or set(stream) & set(".*>/ \t\r\n"):
            raise TopologyError(f"{who}: stream={stream!r}: write a stream's name, which has no blanks and no . * > /")
        if not callable(subject) and not _is_subject(subject):
            raise TopologyError(
                f"{who}: subject={subject!r}: write one without * and >, or a function of key and value"
            )
        if headers is not None and not callable(headers):
            raise TopologyError(f"{who}: headers={headers!r}: write a function of key and value")
        if key_header is not None and (
            not isinstance(key_header, str) or key_header == ID or _NAME.fullmatch(key_header) is None
        ):
            raise TopologyError(f"{who}: key_header={key_header!r}: write the name of a header, such as Key")
        if declare and callable(subject):
            raise TopologyError(
                f"{who}: declare=True makes a stream of one subject: write it, or make the stream yourself"
            )
        self.stream, self._subject, self._declare = stream, subject, declare
        self._value = serializer(who, "value_serializer", value_serializer)
        self._key_header, self._headers = key_header, headers
        self._who = f"{who}, stream {stream!r}"
        self._client = Client(self._who, SinkError, server(who, servers, credentials, domain, options))
        self._begin_again("", False)

    def _begin_again(self, name: str, kept: bool) -> None:
        self._name = name
        self._messages: list[Message] = []
        self._packer = MessagePacker(self._who, kept)
        #: handles of this object that are not committed
        self._mine: set[str] = set()
        self._publisher: Publisher | None = None

    def destination(self) -> str:
        """Return where rows go, for people."""
        return f"stream {self.stream}"

    def check(self) -> None:
        """Raises SinkError where no server answers, it refuses the user, or the stream is missing or does not take the subject."""

        async def look(client: Client) -> None:
            try:
                found = await client.stream(self.stream)
            except Exception as error:
                if getattr(error, "code", None) != 404 or not self._declare:
                    raise
                await client.request(
                    f"STREAM.CREATE.{self.stream}",
                    name=self.stream,
                    subjects=[self._subject],
                    storage="file",
                    retention="limits",
                )
                found = await client.stream(self.stream)
            subjects = found.config.get("subjects") or ()
            if found.config.get("mirror"):
                raise SinkError(f"{self._who} is a mirror of another: publish to that one")
            if found.config.get("no_ack"):
                raise SinkError(
                    f"{self._who} acknowledges nothing (no_ack), so that what is lost stays unknown; take another"
                )
            if isinstance(self._subject, str) and not takes(subjects, self._subject):
                raise SinkError(
                    f"{self._who} has the subjects {', '.join(subjects)}, and not {self._subject!r}; correct it, or add it to the stream"
                )

        try:
            self._client.ask(look)
        finally:
            self._client.close()  # processes are forked from this one

    def open(self, context: Context) -> None:
        """Nothing yet: the first rows connect."""
        self._client.say = context.logger.warning
        self._begin_again(f"{context.run}-{context.unit}-", context.lineage != context.run)

    def write(self, rows: Sequence[Row]) -> Future[None] | None:
        """Make messages of rows; what is returned is done when the stream has stored enough of those before."""
        self._messages += map(self._message, rows)
        return None if self._publisher is None else self._publisher.room()

    def _message(self, row: Row) -> Message:
        key, value = row.key, row.value
        subject = self._subject if isinstance(self._subject, str) else self._subject(key, value)
        if not _is_subject(subject):
            raise SinkError(
                f"{self._who}: {str(subject)[:80]!r}, made of key {str(key)[:80]!r}, is no subject: return one of {_LONGEST:,} bytes at most without "
                "blanks, * and >"
            )
        try:
            data = self._value(value) or b""
        except SinkError as error:
            raise SinkError(f"{self._who}: {error}") from None
        others: dict[str, str] = {}
        if self._key_header is not None and key is not None:
            others[self._key_header] = text = str(key)
            if not _is_text(text):
                raise SinkError(
                    f"{self._who}: key {key!r} is no text in UTF-8 for key_header={self._key_header!r}; take another key"
                )
        if self._headers is not None:
            others.update(self._more(key, value))
        return subject, data, self._name + str(row.id), others or None

    def _more(self, key: Any, value: Any) -> Mapping[str, str]:
        """Return the headers of the user's function. Raises SinkError for some that a commit could not send, ever."""
        assert self._headers is not None
        found: Any = self._headers(key, value)
        if found is None:
            return {}
        if not isinstance(found, Mapping) or not all(map(_is_header, found.items())):
            raise SinkError(
                f"{self._who}: headers of key {key!r}: {found!r}; return a dict of texts by names without blanks and colons"
            )
        return found

    def prepare(self, epoch: int) -> Any:
        """Return what is done with a handle: a token, and the messages with the place that they come behind."""
        messages, self._messages = self._messages, []
        if not messages:
            return None
        publisher = self._published()

        async def made() -> Any:
            base = await publisher.base()
            if self._client.max_payload is not None:
                refuse_large(self._who, self.stream, messages, self._client.max_payload)
            token, handle = self._packer.handle([base, *messages])
            self._mine.add(token)
            return await asyncio.wrap_future(handle) if isinstance(handle, Future) else handle

        return self._client.submit(made())

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Publish messages that the stream does not have; what is returned is done when it has acknowledged all."""
        if handle is None:
            return None
        token, kept = handle
        base, *messages = unpacked(kept)
        publisher = self._published()
        publisher.expect(len(messages))
        # One that was made here, and is given for the first time, cannot be there.
        look = token not in self._mine
        self._mine.discard(token)
        return self._client.submit(publisher.publish(tuple(base), messages, look))

    def _published(self) -> Publisher:
        if self._publisher is None:
            self._publisher = Publisher(self._client, self._who, self.stream)
        return self._publisher

    def end(self, ok: bool) -> None:
        """Disconnect."""
        self.close()

    def close(self) -> None:
        """Disconnect; what was not committed comes again."""
        self._packer.close()
        self._publisher = None
        self._client.close()


def _is_header(item: tuple[Any, Any]) -> bool:
    name, text = item
    if not isinstance(name, str) or not isinstance(text, str) or _NAME.fullmatch(name) is None:
        return False
    return _is_text(text)


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _is_subject(given: Any) -> bool:
    if not isinstance(given, str) or not given or set(given) & set("*> \t\r\n") or "" in given.split("."):
        return False
    return _is_text(given) and (len(given) <= _LONGEST // 4 or len(given.encode()) <= _LONGEST)
