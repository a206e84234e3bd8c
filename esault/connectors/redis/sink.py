"""A stream of Redis as a sink."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

from esault.connectors.redis.client import Client
from esault.connectors.redis.staging import MOST_FIELDS, Staging
from esault.errors import SinkError, TopologyError
from esault.payload.remedy import type_name
from esault.sinks.serializers import serializer
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["RedisSink"]

#: epochs in a handle, at most: with checkpoints the engine itself hands on those of a checkpoint that was given up
_MOST_STAGED = 16
_logger = logging.getLogger(__name__)


class RedisSink(Sink):
    """Entries of a stream of Redis, one for each row; needs `esault[redis]`.

    An entry has the field "key" with the tuple's key and "value" with its value. `key_field` and `value_field` name others; a
    `key_field` of None leaves the key out. With `value_field=None` the value is a dict, and its items are the fields: text, bytes and
    numbers as they are, None left out, others as JSON. A key that is None is left out. `key_serializer`, `value_serializer`: "text",
    "json", "bytes", or a function to bytes (`esault.sinks.serializers`).

    Rows are staged in Redis under `esault:LINEAGE:UNIT:...` and moved with the checkpoint, all of one checkpoint by one script: each row
    is there once, and readers see whole checkpoints. Without checkpoints rows are moved several times a second, and what is replayed
    after a crash is there twice. For a crash of Redis itself it needs `appendonly yes` and `appendfsync always`.

    `on_lost`: what follows where the server has lost what was staged: "fail" ends the run, "warn" says so and goes on without those rows.

    `maxlen=1_000_000` trims the stream to about so many entries. `mode="replace"` deletes it when a run begins anew. A server that is away is
    waited for, `patience` seconds at most.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once; without, what is replayed comes twice"
    extra: ClassVar[str] = "redis"

    def __init__(
        self,
        stream: str,
        url: str = "redis://localhost:6379/0",
        *,
        key_field: str | None = "key",
        value_field: str | None = "value",
        key_serializer: Any = "text",
        value_serializer: Any = "json",
        maxlen: int | None = None,
        mode: str = "append",
        on_lost: str = "fail",
        patience: float = 300.0,
    ) -> None:
        if not isinstance(stream, str) or not stream:
            raise TopologyError(f"RedisSink: stream={stream!r}: write its name, such as 'orders'")
        for name, field in (("key_field", key_field), ("value_field", value_field)):
            if field is not None and (not isinstance(field, str) or not field):
                raise TopologyError(f"RedisSink: {name}={field!r}: write a field's name, or None")
        if key_field is not None and key_field == value_field:
            raise TopologyError(f"RedisSink: key_field and value_field are both {key_field!r}: write two names")
        if maxlen is not None and (not isinstance(maxlen, int) or isinstance(maxlen, bool) or maxlen < 1):
            raise TopologyError(f"RedisSink: maxlen={maxlen!r}: write how many entries to keep, such as 1_000_000")
        if mode not in ("append", "replace"):
            raise TopologyError(f'RedisSink: mode={mode!r}: write "append" or "replace"')
        if on_lost not in ("fail", "warn"):
            raise TopologyError(f'RedisSink: on_lost={on_lost!r}: write "fail" or "warn"')
        self.stream, self.url, self.mode = stream, url, mode
        self._goes_on = on_lost == "warn"
        self._maxlen = maxlen
        self._key_field = None if key_field is None else key_field.encode()
        self._value_field = None if value_field is None else value_field.encode()
        self._key = serializer("RedisSink", "key_serializer", key_serializer)
        self._value = serializer("RedisSink", "value_serializer", value_serializer)
        self._json = serializer("RedisSink", "value_serializer", "json")
        self._client = Client(f"RedisSink({stream!r})", SinkError, url, patience)
        self._staging = Staging(stream, "", "", maxlen)
        self._rows: list[list[bytes]] = []
        #: names that were staged and, as far as is known here, not moved; only the thread changes them
        self._staged: list[str] = []
        self._thread: ThreadPoolExecutor | None = None
        self._forgets = False

    # in the driver -------------------------------------------------------------------------------

    def destination(self) -> str:
        """Return where rows go, for people."""
        return f"stream {self.stream}"

    def check(self) -> None:
        """Raises SinkError where no server answers, the password is wrong, the key is no stream, or keys may be evicted."""

        def look(connection: Any) -> None:
            kind = connection.type(self.stream)
            if kind not in (b"none", b"stream"):
                raise SinkError(
                    f"RedisSink: {self.stream!r} is a {kind.decode()}, no stream; take another name, or delete it"
                )
            policy = str(connection.info("memory").get("maxmemory_policy", ""))
            if policy.startswith("allkeys"):
                raise SinkError(
                    f"RedisSink: the server may evict the stream (maxmemory-policy {policy}); set it to noeviction or volatile-lru"
                )
            if not connection.info("persistence").get("aof_enabled"):
                _logger.warning(
                    "RedisSink(%r): the server keeps no append-only file: if it crashes, rows are lost; set appendonly yes and "
                    "appendfsync always",
                    self.stream,
                )

        try:
            self._client.once(look)
        finally:
            self._client.close()  # processes are forked from this one

    def begin(self, run: RunInfo) -> None:
        """With mode="replace" delete the stream for a run that begins anew."""
        self._staging = Staging(self.stream, run.lineage, run.unit, self._maxlen)
        self._forgets = run.lineage == run.run
        if self.mode == "replace" and not run.resumed:
            self._client.run(lambda connection: connection.delete(self.stream))
        known = self._client.run(self._staging.begin)
        if run.resumed and not run.from_savepoint and not known:
            _logger.warning(
                "RedisSink(%r): the server knows nothing of this run; if it has lost its data, rows of the last checkpoint are missing",
                self.stream,
            )

    def commit_all(self, epoch: int, handles: Sequence[Any]) -> None:
        """Move the rows of a checkpoint into the stream, by one script. What has been moved is not there any more."""
        self._move([name for handle in handles for name in handle or ()])

    def commit(self, epoch: int, handle: Any) -> Future[None] | None:
        """Move the rows of one sub-unit: without checkpoints."""
        if not handle:
            return None

        def move() -> None:
            self._move(list(handle))
            self._staged = [name for name in self._staged if name not in handle]

        return self._background().submit(move)

    def _move(self, names: Sequence[str]) -> None:
        if not names or self._client.run(lambda connection: self._staging.move(connection, names)):
            return
        lost = "the server has lost what was staged (it restarted without its append-only file, or FLUSHALL): rows of one checkpoint are missing"
        if not self._goes_on:
            raise SinkError(
                f"RedisSink({self.stream!r}): {lost}. Set appendonly yes and appendfsync always. To go on without them: "
                'on_lost="warn" and --resume; to send all rows anew: --restart'
            )
        _logger.warning("RedisSink(%r): %s", self.stream, lost)
        for name in names:  # those that are there
            self._client.run(lambda connection, name=name: self._staging.move(connection, [name]))  # type: ignore[misc]

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Delete what was staged and will never be moved."""
        names = [name for handle in kept for name in handle or ()]
        self._client.run(lambda connection: self._staging.forget(connection, names))

    def end(self, ok: bool) -> None:
        """Let go of the connection. Nothing goes on from a run without a state folder, nor from one that has drained."""
        if self._forgets or ok:
            with contextlib.suppress(SinkError):  # a server that is away has been waited for
                self._client.once(self._staging.end if self._forgets else self._staging.expire)
        self._client.close()

    # in sub-units --------------------------------------------------------------------------------

    def open(self, context: Context) -> None:
        """Nothing yet: the first rows connect."""
        self.context = context
        self._staging = Staging(self.stream, context.lineage, context.unit, self._maxlen)
        self._rows, self._staged, self._thread = [], [], None

    def write(self, rows: Sequence[Row]) -> None:
        """Keep them until the checkpoint."""
        try:
            self._rows.extend([self._entry(row.key, row.value) for row in rows])
        except SinkError as error:
            raise SinkError(f"RedisSink({self.stream!r}): {error}") from error.__cause__

    def _entry(self, key: Any, value: Any) -> list[bytes]:
        pairs: list[tuple[bytes, bytes | None]] = []
        if self._key_field is not None and key is not None:
            pairs.append((self._key_field, self._key(key)))
        if self._value_field is not None:
            pairs.append((self._value_field, self._value(value)))
        elif isinstance(value, Mapping):
            pairs += [
                (str(field).encode(), None if each is None else self._cell(each)) for field, each in value.items()
            ]
        else:
            raise SinkError(
                f"the value of key {key!r} is {type_name(type(value))}; with value_field=None it is a dict, whose items are the fields"
            )
        entry = [part for field, data in pairs if data is not None for part in (field, data)]
        if not entry or len(entry) > MOST_FIELDS:
            raise SinkError(f"the row of key {key!r} has {len(entry) // 2} fields: 1 to {MOST_FIELDS // 2} can be")
        return entry

    def _cell(self, each: Any) -> bytes | None:
        if isinstance(each, str):
            return each.encode()
        return bytes(each) if isinstance(each, (bytes, bytearray)) else self._json(each)

    def prepare(self, epoch: int) -> Any:
        """Stage the rows in the background. The handle names them."""
        rows, self._rows = self._rows, []
        if not rows and self._thread is None:
            return None

        def stage() -> list[str] | None:
            if rows:
                name = self._client.run(lambda connection: self._staging.stage(connection, rows))
                # Those that were not committed go with this one. `commit_all` does not tell: what it has moved is not there any more.
                self._staged = [*self._staged, name][-_MOST_STAGED:]
            return self._staged or None

        return self._background().submit(stage)

    def close(self) -> None:
        """Let go of the connection; what was not prepared comes again."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None
        self._client.close()

    def _background(self) -> ThreadPoolExecutor:
        if self._thread is None:  # one: what is prepared later is staged later
            self._thread = ThreadPoolExecutor(1, "esault-redis")
        return self._thread
