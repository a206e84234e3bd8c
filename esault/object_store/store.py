"""An object store, reached by fsspec: listing, ranged reads, what its errors mean, and the wait for one that is away."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from esault.answer_watch import AnswerWatch
from esault.errors import EsaultError
from esault.object_store.refusals import code_of, explained, first_line, passes, replaced
from esault.object_store.stored_object import StoredObject

__all__ = ["ObjectStore"]

T = TypeVar("T")
#: seconds for which a store that is away is waited for
PATIENCE = 300.0
#: seconds between two attempts: the first wait, which doubles, and the longest. A half of each is left to chance
AGAIN_AFTER, AGAIN_AT_MOST = 0.2, 5.0
#: before a store is said to stand still: bytes of a second that it moves at least, and seconds that a listing of many may take
_SLOWEST, _LISTING = 1 << 20, 50.0
_logger = logging.getLogger(__name__)
_watch = AnswerWatch()
#: those of this process; none outlives a fork, for its client's thread does not
_stores: dict[tuple[int, type[EsaultError], str, str, tuple[tuple[str, str], ...]], ObjectStore] = {}
#: variables from which clients take where the store is and who asks
_TAKEN = ("AWS_", "AZURE_", "GCS", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST")


class ObjectStore:
    """The store that a protocol names. `options` go to the client (fsspec's storage_options); all else it takes from its environment.

    Errors come as `error`, in plain words. A store that is away is waited for; it is said once.
    """

    def __init__(self, error: type[EsaultError], protocol: str, options: Mapping[str, Any]) -> None:
        self._error, self.protocol, self._options = error, protocol, dict(options)
        self._made: Any = None
        self._making, self._saying = threading.Lock(), threading.Lock()
        self._away = False
        #: when it answered last
        self._answered = 0.0

    @classmethod
    def of(cls, error: type[EsaultError], url: str, options: Mapping[str, Any] | None) -> ObjectStore:
        """Return that of this process for an address, and for what its environment says now: in a notebook that is often corrected."""
        protocol = url.partition("://")[0]
        options = options or {}
        said = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_TAKEN)))
        key = (os.getpid(), error, protocol, repr(sorted(options.items(), key=str)), said)
        return _stores.get(key) or _stores.setdefault(key, cls(error, protocol, options))

    def list(self, url: str, wait: bool = True) -> dict[str, StoredObject]:
        """Return the objects under `url`, or the one that it names, by their addresses; {} where there is none."""

        def look(client: Any) -> dict[str, StoredObject]:
            base = client._strip_protocol(url)
            objects = {}
            found = client.find(base, detail=True)
            if not isinstance(found, Mapping):  # adlfs gives a list of one name for one blob
                found = {name: client.info(name) for name in found}
            for name, info in found.items():
                address = url + name[len(base) :]
                if info.get("type") != "directory" and not address.endswith("/"):
                    objects[address] = StoredObject.described(address, info)
            return objects

        return self._run(url, look, None if wait else _NEVER, _LISTING)

    def fetch(self, of: StoredObject, begin: int, end: int, stop: threading.Event | None = None) -> bytes:
        """Return bytes `begin` to `end` of this version of the object, fewer at its end. `stop` ends a wait for the store."""
        end = min(end, of.size)
        if begin >= end:
            return b""
        return self._run(of.url, lambda client: self._read(client, of, begin, end), stop, (end - begin) / _SLOWEST)

    def read(self, url: str) -> bytes | None:
        """Return the whole object at this address; None where there is none."""

        def look(client: Any) -> bytes | None:
            try:
                return bytes(client.cat_file(client._strip_protocol(url)))
            except FileNotFoundError as error:
                if code_of(error) == "NoSuchBucket":
                    raise
                return None

        return self._run(url, look, None)

    def modified(self, url: str) -> float | None:
        """Return when the object was put there, seconds since the epoch; None where there is none."""

        def look(client: Any) -> float | None:
            try:
                return float(client.modified(client._strip_protocol(url)).timestamp())
            except FileNotFoundError as error:
                if code_of(error) == "NoSuchBucket":
                    raise
                return None

        return self._run(url, look, None)

    def write(self, url: str, data: bytes) -> None:
        """Put an object there, in place of what is: a reader sees all of it or nothing of it. It is durable behind this."""
        self._run(url, lambda client: client.pipe_file(client._strip_protocol(url), data), None, len(data) / _SLOWEST)

    def write_absent(self, url: str, data: bytes) -> bool:
        """Put an object there, if none is; return whether it is this one: of several who try one succeeds."""

        def put(client: Any) -> bool:
            path = client._strip_protocol(url)
            try:
                client.pipe_file(path, data, mode="create")
            except FileExistsError:
                # It may be ours, of a request whose answer was lost.
                return bytes(client.cat_file(path)) == data
            return True

        return self._run(url, put, None, len(data) / _SLOWEST)

    def upload(self, url: str, file: str) -> None:
        """Put the content of a file there, in place of what is: a reader sees all of it or nothing of it. It is durable behind this."""
        size = os.path.getsize(file)
        self._run(url, lambda client: client.put_file(file, client._strip_protocol(url)), None, size / _SLOWEST)

    def children(self, url: str) -> dict[str, int | None]:
        """Return what is directly below `url`: name -> bytes, None for a "folder"; {} where nothing is."""

        def look(client: Any) -> dict[str, int | None]:
            base = str(client._strip_protocol(url))
            try:
                found = client.ls(base, detail=True)
            except FileNotFoundError as error:
                if code_of(error) == "NoSuchBucket":
                    raise
                return {}
            below = {each["name"][len(base) :].strip("/"): each for each in found}
            return {
                name: None if each["type"] == "directory" else int(each["size"] or 0)
                for name, each in below.items()
                if name
            }

        return self._run(url, look, None)

    def copy(self, source: str, target: str) -> bool:
        """Have the store copy an object; return whether it is there."""

        def copy(client: Any) -> bool:
            try:
                client.cp_file(*map(client._strip_protocol, (source, target)))
            except FileNotFoundError as error:
                if code_of(error) == "NoSuchBucket":
                    raise
                return False
            return True

        return self._run(source, copy, None)

    def remove(self, urls: Sequence[str]) -> None:
        """Remove objects; those that are not there are fine."""

        def remove(client: Any) -> None:
            for url in urls:
                with contextlib.suppress(FileNotFoundError):
                    client.rm_file(client._strip_protocol(url))

        if urls:
            self._run(urls[0], remove, None)

    def _read(self, client: Any, of: StoredObject, begin: int, end: int) -> bytes:
        path = client._strip_protocol(of.url)
        if self.protocol in ("s3", "s3a"):
            from fsspec.asyn import sync

            data = sync(client.loop, _get, client, path, of.version, begin, end)
        else:
            data = client.cat_file(path, start=begin, end=end)
            # after the read: what was there before it and is still there is what was read
            if StoredObject.described(of.url, client.info(path)) != of:
                raise self._error(replaced(of.url))
        if len(data) != end - begin:
            raise ConnectionResetError(f"{len(data)} bytes of {end - begin} came")
        return bytes(data)

    def _run(self, url: str, work: Callable[[Any], T], stop: threading.Event | None, allowed: float = 0.0) -> T:
        """Return `work(client)`, again while the store is away, until `stop` is set. It may take `allowed` seconds."""
        until: float | None = None
        longest = AGAIN_AFTER
        while True:
            began = time.monotonic()
            try:
                with _watch.asking(self._silent(url, began), allowed):
                    found = work(self._client())
            except EsaultError:
                raise
            except Exception as error:
                now = time.monotonic()
                until = now + PATIENCE if until is None else until
                if not passes(error) or now >= until or (stop is not None and stop.is_set()):
                    raise self._error(explained(url, self.protocol, self._options, error)) from error
                self._say_away(url, error, began)
                pause = min(until - now, longest * random.uniform(0.5, 1.0))
                longest = min(AGAIN_AT_MOST, 2 * longest)
                if stop is None:
                    time.sleep(pause)
                else:
                    stop.wait(pause)
                continue
            self._say_back(url)
            return found

    def _client(self) -> Any:
        with self._making:
            if self._made is None:
                import fsspec

                options = self._options
                if self.protocol in ("s3", "s3a"):
                    # Waiting is done here, where it is said.
                    config = {"retries": {"total_max_attempts": 2, "mode": "standard"}, "max_pool_connections": 32}
                    options = {**options, "config_kwargs": {**config, **(options.get("config_kwargs") or {})}}
                alone = self.protocol != "memory"
                made = fsspec.filesystem(self.protocol, skip_instance_cache=alone, use_listings_cache=False, **options)
                if self.protocol in ("s3", "s3a"):
                    made.retries = 2
                self._made = made
            return self._made

    def _silent(self, url: str, began: float) -> Callable[[float], None]:
        return lambda seconds: self._say_away(url, TimeoutError(f"its answer takes longer than {seconds:.0f} s"), began)

    def _say_away(self, url: str, error: Exception, began: float) -> None:
        with self._saying:
            if not self._away and began >= self._answered:  # else it has answered another thread meanwhile
                self._away = True
                _logger.warning("%s: waits for the object store: %s", url, first_line(error))

    def _say_back(self, url: str) -> None:
        with self._saying:
            self._answered = time.monotonic()
            if self._away:
                self._away = False
                _logger.warning("%s: goes on: the object store answers", url)


_NEVER = threading.Event()
_NEVER.set()


async def _get(client: Any, path: str, version: str, begin: int, end: int) -> bytes:
    """Return a range of an object of S3; one request, refused by the server where the object is another one by now."""
    bucket, _, key = path.partition("/")
    answer = await client._call_s3(
        "get_object", Bucket=bucket, Key=key, Range=f"bytes={begin}-{end - 1}", IfMatch=f'"{version}"'
    )
    async with answer["Body"] as body:
        data: bytes = await body.read()
    return data
