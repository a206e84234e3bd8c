"""The file operations of a landed table on an object store: an entry of the log gets its number by put-if-absent."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from esault.background import in_background
from esault.errors import SinkError
from esault.object_store.store import ObjectStore

__all__ = ["ObjectDisk"]


class ObjectDisk:
    """A `Disk`. What is written under a scratch name stays in memory until it gets its own: an object appears whole.

    `rename` puts the object in the background; behind `sync_folder` of its folder it is durable. Errors of the store are SinkErrors.
    A commit, in a thread of its own, waits for what is in the log's folder, and not for parts, for which `prepare` is to wait.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None) -> None:
        self._url, self._options = url, options
        self._scratch: dict[str, bytes] = {}
        #: by folder
        self._puts: dict[str, list[Future[None]]] = {}
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes:
        found = self._store.read(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def names(self, folder: str) -> list[str]:
        """Names of the objects in a folder, and of folders in it."""
        return list({url[len(folder) :].strip("/").partition("/")[0] for url in self._store.list(folder)})

    def write_new(self, path: str, data: bytes | memoryview) -> None:
        self._scratch[path] = bytes(data)

    def link(self, source: str, target: str) -> bool:
        return self._store.write_absent(target, self._scratch[source])

    def rename(self, source: str, target: str) -> None:
        put = in_background(partial(self._store.write, target, self._scratch.pop(source)))
        with self._lock:
            self._puts.setdefault(os.path.dirname(target), []).append(put)

    def remove(self, path: str) -> None:
        if self._scratch.pop(path, None) is None:
            self._store.remove([path])

    def sync_folder(self, folder: str) -> None:
        with self._lock:
            puts = self._puts.pop(folder, [])
        for put in puts:
            put.result()

    def make_folder(self, folder: str) -> None:
        """Nothing: a store has no folders."""

    def modified(self, path: str) -> float:
        found = self._store.modified(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def touch(self, path: str) -> None:
        raise SinkError(f"{path}: a table in an object store is not compacted")

    @property
    def _store(self) -> ObjectStore:
        return ObjectStore.of(SinkError, self._url, self._options)  # that of this process
