"""Streams of NATS JetStream as a source: each stream, or each subject that is asked for, is a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar

from esault.connectors.nats.client import Client, server
from esault.connectors.nats.messages import Begin, Messages, Reading
from esault.errors import SourceError, TopologyError
from esault.sources import deserializers
from esault.topology.arguments import LATEST, listed
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource

__all__ = ["NatsSource"]


class NatsSource(SplitSource[Any, Any]):
    """Messages of streams of NATS JetStream, one tuple for each; needs `esault[nats]`.

    A tuple's key is the message's subject, or the header that `key` names (None where a message has none); its value is what the
    deserializer makes of the data: "json", "text", "bytes", or a function from bytes. Each stream is a split, or with `subjects` each of these
    in each stream: filters such as "orders.eu.*" that must not overlap. A split stays in order, and its position, a sequence of the stream, is
    in checkpoints: consumers are ephemeral, and nothing is acknowledged.

    `start`: "first"; "new", what comes from now on; or a sequence, a whole number. `start_time`, seconds since the epoch, goes before it: from the
    first message of this time or a later one. Both hold where a split is opened for the first time. `until="end"`: a split ends where its
    stream ended then. `metadata=True`: a value is a dict of "value", "subject", "sequence", "timestamp" (seconds since the epoch),
    "headers" and "stream". `on_bad_message="skip"` counts messages that the deserializer refuses and leaves them out; "fail" ends the run.

    `on_removed`: what follows where messages were removed before they were read (limits of the stream, purge, deletion). "warn" says how many,
    counts them as `messages_removed_unread`, and goes on; "fail" ends the run. With `subjects` it is not known how many were of them: it is
    said, and not counted. A stream that is a work queue, or keeps messages while there is interest, is refused: what is read is gone there.

    `servers` is a URL or a list of them, `credentials` a file of user credentials, `domain` JetStream's; `options` has any other argument of
    nats-py's `connect`. A server that is away is waited for.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each message counts once: sequences are in them"
    extra: ClassVar[str] = "nats"

    def __init__(
        self,
        streams: str | Iterable[str],
        servers: str | Iterable[str] = "nats://localhost:4222",
        *,
        subjects: str | Iterable[str] | None = None,
        deserializer: Any = "json",
        key: str | None = None,
        start: str | int = "first",
        start_time: float | None = None,
        until: str | None = None,
        metadata: bool = False,
        on_bad_message: str = "fail",
        on_removed: str = "warn",
        credentials: str | None = None,
        domain: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        who = "NatsSource"
        self.streams = _names(who, "streams", streams)
        self.subjects = None if subjects is None else _names(who, "subjects", subjects)
        for at, one in enumerate(self.subjects or ()):
            for other in (self.subjects or ())[:at]:
                if overlap(one, other):
                    raise TopologyError(
                        f"{who}: subjects {other!r} and {one!r} overlap: a message would come twice; leave one out"
                    )
        if start not in ("first", "new") and (type(start) is not int or start < 1):
            raise TopologyError(f'{who}: start={start!r}: write "first", "new", or a sequence, which is at least 1')
        if start_time is not None and (type(start_time) not in (int, float) or not 0 <= start_time < LATEST):
            raise TopologyError(f"{who}: start_time={start_time!r}: write seconds since the epoch")
        if until not in (None, "end"):
            raise TopologyError(f'{who}: until={until!r}: write "end", or None for a stream without end')
        if on_bad_message not in ("fail", "skip"):
            raise TopologyError(f'{who}: on_bad_message={on_bad_message!r}: write "fail" or "skip"')
        if on_removed not in ("warn", "fail"):
            raise TopologyError(f'{who}: on_removed={on_removed!r}: write "warn" or "fail"')
        value = deserializers.deserializer(who, "deserializer", deserializer)
        time = None if start_time is None else datetime.fromtimestamp(start_time, timezone.utc).isoformat()
        self._begin = Begin(start, time, until == "end")
        self.moving_start = start == "new" and time is None
        self._reading = Reading(value, key, metadata, on_bad_message == "skip", on_removed == "fail")
        self._client = Client(who, SourceError, server(who, servers, credentials, domain, options))
        self._splits: dict[str, tuple[str, str | None]] = {
            name if subject is None else f"{name}[{subject}]": (name, subject)
            for name in self.streams
            for subject in (self.subjects or (None,))
        }

    def check(self) -> None:
        """Raises SourceError where no server answers, it refuses the user, or a stream is missing or cannot be read again."""

        async def look(client: Client) -> None:
            for name in self.streams:
                try:
                    found = await client.stream(name)
                except Exception as error:
                    raise SourceError(
                        str(client.said(error)).replace(client.who, f"{client.who}, stream {name!r}", 1)
                    ) from error
                if found.config["retention"] != "limits":
                    raise SourceError(
                        f"{client.who}, stream {name!r} has the retention {found.config['retention']!r}: what is read is gone there, and could "
                        "not come again after a crash; have it written to a stream with the retention limits, which has this one as its source"
                    )

        try:
            self._client.ask(look)
        finally:
            self._client.close()  # processes are forked from this one

    def open(self, context: Context) -> None:
        """Connect nothing yet: the first split does."""
        self._client.say = context.logger.warning

    def splits(self) -> Sequence[str]:
        """Return the streams, or "stream[subject]" for each of the subjects."""
        return list(self._splits)

    def open_split(self, id: str, position: Any) -> SplitReader[Any, Any]:
        """Return a reader from this position on. Raises SourceError."""
        stream, subject = self._splits[id]
        return Messages(self._client, stream, subject, position, self._begin, self._reading)

    def close(self) -> None:
        """Let go of the connection; readers are closed before."""
        self._client.close()


def overlap(one: str, other: str) -> bool:
    """Return whether a subject can match both of these."""
    for left, right in zip(one.split("."), other.split(".")):
        if ">" in (left, right):
            return True
        if left != right and "*" not in (left, right):
            return False
    return one.count(".") == other.count(".")


def _names(who: str, option: str, given: str | Iterable[str]) -> list[str]:
    names = listed(given)
    kind = option[:-1]
    if not names or not all(isinstance(name, str) and name and not set(name) & set(" \t\r\n") for name in names):
        raise TopologyError(f"{who}: {option}={given!r}: write the name of a {kind}, or a list of them, without blanks")
    if len({*names}) < len(names):
        raise TopologyError(f"{who}: {option}={given!r}: a name is there twice; leave one out")
    if kind == "stream" and any(set(name) & set(".*>/") for name in names):
        raise TopologyError(
            f"{who}: {option}={given!r}: the name of a stream has no . * > /; subjects are given as subjects=..."
        )
    return names
