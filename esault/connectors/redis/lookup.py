"""Keys of Redis that rows of a stream are looked up in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from esault.connectors.lookup import Lookup
from esault.connectors.redis.client import Client, library
from esault.errors import SourceError, TopologyError
from esault.sources.deserializers import deserializer
from esault.topology.arguments import listed

__all__ = ["RedisLookup"]


class RedisLookup(Lookup):
    """Values of Redis by their keys, for `stream.enrich(name, table, of=...)`; needs `esault[redis]`.

    `key` is how the keys are named: "customer:{}", where what is looked up stands for `{}`; with several `{}` it is a tuple of as many.
    `type="hash"` gives the fields of a hash, a dict of texts; `fields` chooses some: a list, or one name for its value alone (a field
    that is not there is None). `type="string"` gives a value as `value_deserializer` reads it: "json", "text", "bytes", or a function from
    bytes. A key that is not there gives None.

    Each process has a cache of `max_rows` keys, in which what was found is good for `expire_after_write` seconds (None: for ever), and so
    is, with `cache_missing_key`, that there is nothing. What it does not have is asked in the background, all keys that wait (`max_batch`
    at most) in one pipeline, by one connection of the process.

    A server that is away is waited for, `patience` seconds at most; then `on_error` of the unit decides. After a restore a key is looked
    up anew, and may have changed.
    """

    extra: ClassVar[str] = "redis"

    def __init__(
        self,
        key: str,
        url: str = "redis://localhost:6379/0",
        *,
        type: str = "hash",
        fields: str | Sequence[str] | None = None,
        value_deserializer: str | Callable[[bytes], Any] = "json",
        max_rows: int = 10_000,
        expire_after_write: float | None = 60.0,
        cache_missing_key: bool = True,
        max_batch: int = 1000,
        patience: float = 300.0,
    ) -> None:
        who = f"RedisLookup({key!r})"
        if not isinstance(key, str) or "{}" not in key:
            raise TopologyError(f'{who}: write how keys are named, with {{}} for what is looked up: "customer:{{}}"')
        if type not in ("hash", "string"):
            raise TopologyError(f'{who}: type={type!r}: write "hash" or "string"')
        if fields is not None and type != "hash":
            raise TopologyError(f'{who}: fields={fields!r} are those of a hash; write type="hash", or leave them out')
        if fields is not None and not all(isinstance(field, str) and field for field in listed(fields)):
            raise TopologyError(f"{who}: fields={fields!r}: write names of fields")
        super().__init__(who, max_rows, expire_after_write, cache_missing_key, max_batch)
        self.url = url
        self._pieces = key.split("{}")
        self._type, self._one = type, isinstance(fields, str)
        self._fields = None if fields is None else listed(fields)
        self._deserialize = deserializer(who, "value_deserializer", value_deserializer)
        self._client = Client(who, SourceError, url, patience, answer_within=15.0)

    def check(self) -> None:
        """Raises SourceError where no server answers, or the password is wrong."""
        try:
            self._client.once(lambda connection: connection.ping())
        finally:
            self._client.close()  # processes are forked from this one

    def _fetch(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        names = [self._name(key) for key in keys]
        asked = [name for name in names if isinstance(name, bytes)]
        answers = iter(self._client.run(lambda connection: self._asked(connection, asked)) if asked else ())
        return {
            key: self._found(name, next(answers)) if isinstance(name, bytes) else name for key, name in zip(keys, names)
        }

    def _asked(self, connection: Any, names: Sequence[bytes]) -> Sequence[Any]:
        redis = library(self._who, SourceError)
        with connection.pipeline(transaction=False) as pipeline:
            for name in names:
                if self._type == "string":
                    pipeline.get(name)
                elif self._fields is None:
                    pipeline.hgetall(name)
                else:
                    pipeline.hmget(name, self._fields)
            answers: Sequence[Any] = pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, redis.RedisError) and not str(answer).startswith("WRONGTYPE"):
                raise answer
        return answers

    def _name(self, key: Any) -> bytes | SourceError | None:
        """Return the key in Redis; None where a part of it is none, which nothing is under."""
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(self._pieces) - 1:
            return SourceError(
                f"{self._who}: the key {key!r} has {len(parts)} parts, and there are {len(self._pieces) - 1} {{}}"
            )
        if None in parts:
            return None
        try:
            filled = [each if isinstance(each, bytes) else str(each).encode() for each in parts]
        except UnicodeEncodeError:
            return SourceError(f"{self._who}: the key {key!r} is no text in UTF-8: give it as bytes")
        pieces = [piece.encode() for piece in self._pieces]
        return pieces[0] + b"".join(each + piece for each, piece in zip(filled, pieces[1:]))

    def _found(self, of: bytes, answer: Any) -> Any:
        name = of.decode("utf-8", "backslashreplace")
        if isinstance(answer, Exception):
            other = "string" if self._type == "hash" else "hash"
            return SourceError(f'{self._who}: {name!r} is no {self._type}; correct the name, or write type="{other}"')
        try:
            if self._type == "string":
                return None if answer is None else self._deserialize(answer)
            if self._fields is None:
                return {field.decode(): value.decode() for field, value in answer.items()} or None
            values = [None if value is None else value.decode() for value in answer]
        except Exception as error:
            return SourceError(f"{self._who}: what is under {name!r} cannot be read: {type(error).__name__}: {error}")
        if values.count(None) == len(values):
            return None
        return values[0] if self._one else dict(zip(self._fields, values))

    def _disconnect(self) -> None:
        self._client.close()
