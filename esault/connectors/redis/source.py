"""Streams of Redis as a source: each stream is a split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from esault.connectors.redis.client import Client
from esault.connectors.redis.entries import Entries, Reading
from esault.errors import SourceError, TopologyError
from esault.topology.arguments import check_seconds, listed
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource

__all__ = ["RedisSource"]

#: seconds that a server has for an answer: the data loop waits for it
_ANSWER_WITHIN = 4.0

_ID = re.compile(r"\d+(-\d+)?")


class RedisSource(SplitSource[Any, Any]):
    """Entries of streams of Redis, one tuple for each; needs `esault[redis]`.

    A tuple's value is a dict of the entry's fields, its key the stream's name, or the field that `key` names (None where an entry has no
    such field). Each stream is a split: it stays in order, and its position, the id of the last entry that was read, is in checkpoints. A
    stream that is missing is waited for. A name with "*", "?" or "[" is a pattern as of KEYS: all streams that match it; those that are
    added are found every `every` seconds, and read from their first entry.

    `start`: "earliest"; "latest", what comes from now on; or an id, such as "1700000000000-0": what comes behind it, as with XREAD. It holds
    where a stream is opened for the first time. `until="end"`: a stream ends at the entry that was its last then. `encoding=None`: fields
    are bytes. `metadata=True`: a value is a dict of "fields", "id", "timestamp" (seconds since the epoch, from the id) and "stream".

    `on_trimmed`: what follows where entries were removed before they were read (MAXLEN, XTRIM, XDEL). "warn" says how many, counts them as
    `entries_removed_unread`, and goes on; "fail" ends the run. Redis knows how many since its version 7.

    Entries are not removed, and consumer groups not used. A server that is away is waited for, `patience` seconds at most.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each entry counts once: ids are in them"
    extra: ClassVar[str] = "redis"

    def __init__(
        self,
        streams: str | Iterable[str],
        url: str = "redis://localhost:6379/0",
        *,
        key: str | None = None,
        start: str = "earliest",
        until: str | None = None,
        every: float = 10.0,
        encoding: str | None = "utf-8",
        metadata: bool = False,
        on_trimmed: str = "warn",
        patience: float = 300.0,
    ) -> None:
        self.streams: list[str] = listed(streams)
        if not self.streams or not all(isinstance(stream, str) and stream for stream in self.streams):
            raise TopologyError(f"RedisSource: streams={streams!r}: write a stream's name, or a list of names")
        if not isinstance(start, str) or (start not in ("earliest", "latest") and not _ID.fullmatch(start)):
            raise TopologyError(
                f'RedisSource: start={start!r}: write "earliest", "latest", or an id such as "1700000000000-0"'
            )
        if until not in (None, "end"):
            raise TopologyError(f'RedisSource: until={until!r}: write "end", or None for a stream without end')
        if on_trimmed not in ("warn", "fail"):
            raise TopologyError(f'RedisSource: on_trimmed={on_trimmed!r}: write "warn" or "fail"')
        if encoding is not None:
            try:
                "".encode(encoding)
            except (LookupError, TypeError):
                raise TopologyError(
                    f'RedisSource: encoding={encoding!r}: write one that Python knows, such as "utf-8", or None for bytes'
                ) from None
        self.url = url
        self._names = [name for name in self.streams if not set("*?[") & set(name)]
        self._patterns = [name for name in self.streams if set("*?[") & set(name)]
        self._start, self._ends = start, until == "end"
        self.moving_start = start == "latest"
        self._reading = Reading(key, encoding, metadata, on_trimmed == "fail")
        self._client = Client("RedisSource", SourceError, url, patience, _ANSWER_WITHIN)
        every = check_seconds("RedisSource", "every", every)
        self.discovery_interval = every if self._patterns and not self._ends else None
        self._found: list[str] = []
        self._left_out: set[bytes] = set()
        self._say: Callable[[str], None] = lambda line: None

    def check(self) -> None:
        """Raises SourceError where no server answers, the password is wrong, or a key is no stream."""

        def look(connection: Any) -> None:
            for name in self._names:
                kind = connection.type(name).decode()
                if kind not in ("none", "stream"):
                    raise SourceError(f"RedisSource: {name!r} is a {kind}, no stream; correct the name")
                if kind == "none" and self._ends:
                    raise SourceError(
                        f'RedisSource: there is no stream {name!r}; correct the name, or leave until="end" out'
                    )
            if self._patterns and not self._names and self._ends and not self._matching(connection):
                raise SourceError(f"RedisSource: no stream matches {', '.join(self._patterns)}; correct the pattern")
            connection.ping()

        try:
            self._client.once(look)
        finally:
            self._client.close()  # processes are forked from this one

    def open(self, context: Context) -> None:
        """Connect nothing yet: the first read does."""
        self._say = context.logger.warning
        self._left_out.clear()  # `check` has said nothing

    def splits(self) -> Sequence[str] | None:
        """Return the names of all streams there are now; those known before, or None, while no server answers."""
        if not self._patterns:
            return self._names
        answered, matching = self._client.attempt(self._matching)
        if not answered and not self._found:
            return None  # a run that goes on would forget how far it had come in those that it does not name
        # One that was deleted stays: its reader says so, and it may be made anew.
        self._found = list(dict.fromkeys([*self._names, *self._found, *(matching or ())]))
        return self._found

    def open_split(self, id: str, position: Any) -> SplitReader[Any, Any]:
        """Return a reader of this stream from (id, last id, number of entries) on. Raises SourceError."""
        return self._reader(id, position, self._start)

    def open_added_split(self, id: str) -> SplitReader[Any, Any]:
        """Return a reader from the first entry on; with an id to start at as for any other."""
        return self._reader(id, None, "earliest" if self._start == "latest" else self._start)

    def close(self) -> None:
        """Let go of the connection; readers are closed before."""
        self._client.close()

    def _reader(self, stream: str, position: Any, start: str) -> Entries:
        return Entries(self._client, stream, position, start, self._ends, self._reading, self._say)

    def _matching(self, connection: Any) -> list[str]:
        names: set[str] = set()
        for pattern in self._patterns:
            found = connection.scan_iter(match=pattern, count=1000, _type="stream")
            for name in found:
                try:
                    names.add(name.decode())
                except UnicodeDecodeError:
                    self._leave_out(name)
        return sorted(names)

    def _leave_out(self, name: bytes) -> None:
        if name not in self._left_out:
            self._left_out.add(name)
            self._say(
                f"RedisSource: stream {name!r} is left out: its name is no UTF-8, so it cannot be a key; rename it"
            )
