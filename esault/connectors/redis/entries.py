"""The reader of one stream: where it begins, its entries as tuples, and those that were removed before they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from esault.connectors.redis.client import Client, library
from esault.errors import SourceError
from esault.topology.split_source import SplitReader
from esault.topology.spout import EndOfStream

__all__ = ["Entries", "Reading"]

#: the id of the last entry that was read, the one at which the stream ends, and how many entries had been added to the stream up to the
#: first; None where that is not known
_Position = tuple[str, "str | None", "int | None"]


class Reading(NamedTuple):
    """Options of reading entries."""

    #: the field that is the tuple's key; None: the stream's name is
    key: str | None
    #: of fields; None: they are bytes
    encoding: str | None
    metadata: bool
    #: entries that were removed unread end the run
    fails: bool


class Entries(SplitReader[Any, Any]):
    """The entries of one stream. `client` is that of all streams; `say` takes lines for the user."""

    def __init__(
        self,
        client: Client,
        stream: str,
        position: _Position | None,
        start: str,
        ends: bool,
        reading: Reading,
        say: Callable[[str], None],
    ) -> None:
        self._client, self._stream, self._reading, self._say = client, stream, reading, say
        self._name = f"RedisSource, stream {stream!r}"
        self._redis = library("RedisSource", SourceError)
        #: added so far, when it was asked last
        self._added: int | None = None
        self._removed = 0
        #: the last read came to the end of the stream
        self._at_the_end = False
        self._ids: list[str] = []
        self._last, self._end, self._seen = position or self._begun(start, ends)

    def _begun(self, start: str, ends: bool) -> _Position:
        def look(connection: Any) -> Any:
            return self._asked(connection.pipeline(transaction=True))[0]

        info = self._client.once(look)
        newest = info["last-generated-id"].decode()
        added = info.get("entries-added")
        seen: int | None = None
        if start == "earliest":
            start, seen = "0-0", None if added is None else added - info["length"]
        elif start == "latest":
            start, seen = newest, added
        return start, newest if ends else None, seen

    def _asked(self, pipeline: Any) -> tuple[Mapping[str, Any], Any]:
        """Return what Redis knows of the stream, and the answer to the command that is in the pipeline; both at one moment."""
        with pipeline:
            *answers, info = pipeline.xinfo_stream(self._stream).execute(raise_on_error=False)
        if isinstance(info, self._redis.ResponseError) and "no such key" in str(info):
            info = {"last-generated-id": b"0-0", "entries-added": 0, "length": 0}
        for answer in (*answers, info):
            if isinstance(answer, Exception):
                raise answer
        return info, answers[0] if answers else None

    # entries -----------------------------------------------------------------------------------

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        self._ids = []
        if self._end is not None and _order(self._last) >= _order(self._end):
            raise EndOfStream
        if limit < 1:
            return []

        def ask(connection: Any) -> Any:
            pipeline = connection.pipeline(transaction=True)
            return self._asked(pipeline.xrange(self._stream, f"({self._last}", self._end or "+", count=limit))

        done, answer = self._client.attempt(ask)
        if not done or answer is None:
            return []
        info, entries = answer
        ids = [id.decode() for id, _ in entries]
        rows = [self._row(id, fields) for id, (_, fields) in zip(ids, entries)]
        self._at_the_end = len(rows) < limit
        self._account(info, len(rows), self._at_the_end and self._end is None)
        self._ids = ids
        if ids:
            self._last = ids[-1]
        if self._end is not None and len(rows) < limit:
            self._last = self._end
        return rows

    def _row(self, id: str, fields: Mapping[bytes, bytes]) -> tuple[Any, Any]:
        encoding = self._reading.encoding
        value: dict[str, Any]
        try:
            if encoding is None:
                value = {name.decode("utf-8", "backslashreplace"): data for name, data in fields.items()}
            else:
                value = {name.decode(encoding): data.decode(encoding) for name, data in fields.items()}
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{self._name}, entry {id}: {error}; name its encoding, or take bytes with encoding=None"
            ) from None
        key = self._stream if self._reading.key is None else value.get(self._reading.key)
        if self._reading.metadata:
            timestamp = int(id.partition("-")[0]) / 1000
            value = {"fields": value, "id": id, "timestamp": timestamp, "stream": self._stream}
        return key, value

    # what was removed before it was read ---------------------------------------------------------

    def _account(self, info: Mapping[str, Any], rows: int, to_the_end: bool) -> None:
        """Count the entries that were removed unread. Raises SourceError, with nothing changed, if that is asked for."""
        added, removed = info.get("entries-added"), 0
        if added is None:  # before Redis 7
            return
        seen = self._seen
        if seen is not None and added < seen:
            self._tell(
                f"it has had {added} entries and {seen} were read: it was deleted and made anew, or the server has lost its newest; "
                f"going on with ids behind {self._last}"
            )
            seen = added - rows if to_the_end else None
        if seen is not None:
            # In the middle only that is sure: of those that are gone at most `seen` had been read.
            removed = max(0, added - seen - rows if to_the_end else added - info["length"] - seen)
            if removed:
                self._tell(
                    f"{removed} entries behind {self._last} were removed before they were read (MAXLEN, XTRIM, XDEL): they are lost here; "
                    "keep more of them, or read faster"
                )
        self._removed += removed
        self._added = added
        self._seen = added if to_the_end else None if seen is None else seen + removed + rows

    def _tell(self, text: str) -> None:
        if self._reading.fails:
            raise SourceError(f'{self._name}: {text}. To go on without them: on_trimmed="warn" and --resume')
        self._say(f"{self._name}: {text}")

    # the rest ----------------------------------------------------------------------------------

    def position(self) -> _Position:
        return self._last, self._end, self._seen

    def row_ids(self) -> list[str]:
        return self._ids

    def caught_up(self) -> bool:
        return self._at_the_end if self._added is None else self.lag() == 0  # before Redis 7 it is not counted

    def lag(self) -> int | None:
        if self._end is not None or self._added is None or self._seen is None:
            return None
        return max(0, self._added - self._seen)

    def counters(self) -> dict[str, int]:
        return {"entries_removed_unread": self._removed} if self._removed else {}


def _order(id: str) -> tuple[int, int]:
    milliseconds, _, number = id.partition("-")
    return int(milliseconds), int(number or 0)
