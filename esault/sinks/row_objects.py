"""Rows of one sub-unit as objects of a store: staged by `prepare`, shown by `commit`, under one prefix that readers read whole.

Below the prefix `s3://bucket/rows` lie

    20261125T185000.123456-3-X.jsonl     an object of whole commits
    .staged/LINEAGE/NAME                 what will be an object of this name
    .staged/LINEAGE/NAME.done            says that it is one

A commit has the store copy the staged object to its name, says so, and removes what was staged. So a commit that comes
again, or at the same time in the driver, knows that it is done, also where the object was taken away meanwhile. What
says so goes when its sub-unit commits a later checkpoint. What a killed or stopped run leaves of it goes at the second
resume, since the first commits that checkpoint again, and at the end of a run whose sources ended.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote

from esault.background import in_background
from esault.errors import SinkError
from esault.object_store.store import ObjectStore
from esault.topology.context import Context
from esault.topology.sink import RunInfo

__all__ = ["RowObjects"]

#: bytes of rows that are staged before their checkpoint, and so many of these at a time
_SPILL, _AT_ONCE = 16 * 1024 * 1024, 2


class RowObjects:
    """See the module. Raises SinkError, naming address and remedy."""

    def __init__(self, url: str, suffix: str, options: Mapping[str, Any] | None, header: bytes = b"") -> None:
        """`header`: what each object begins with."""
        self.url, self._suffix, self._options, self._header = url.rstrip("/"), suffix, options, header
        self._lineage = ""
        self._begun = False
        #: rows that are not staged yet, and names of what is or is about to be
        self._rows = bytearray()
        self._staging: list[Future[None]] = []
        self._names: list[str] = []
        #: names that `prepare` has given, and no commit has taken
        self._prepared: list[str] = []
        #: names that were committed, and in which epoch, while it is said in the store
        self._done: dict[str, int] = {}
        self._sub_unit = ""

    def check(self, mode: str) -> None:
        """Check that the store answers, and knows the bucket; changes nothing."""
        self._store().list(f"{self.url}/.staged", wait=False)

    def begin(self, run: RunInfo, mode: str) -> None:
        """Once per run: do with objects that are there what `mode` says."""
        self._lineage = run.lineage or run.run
        store = self._store()
        probe = f"{self._staged(self._lineage)}/writable"
        store.write(probe, b"")
        store.remove([probe])
        if not run.resumed and mode != "append":
            there = list(store.list(self.url))
            shown = [url for url in there if not url.startswith(f"{self.url}/.")]
            if mode == "error" and shown:
                raise SinkError(
                    f'{self.url}: there are objects already, such as {shown[0]}; remove them, or say mode="append" to add to them, '
                    'mode="replace" to start anew, or write elsewhere'
                )
            store.remove(there)
        self._begun = True

    def end(self, ok: bool) -> None:
        """Once per run: remove what is not needed any more."""
        if self._begun and ok:  # else a later run may go on, and commit what had been prepared
            self.forget(())

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self._lineage = context.lineage or context.run
        self._sub_unit = quote(str(context.sub_unit), safe="")
        self._rows.clear()
        self._staging, self._names, self._prepared, self._done = [], [], [], {}

    def write(self, data: bytes) -> Future[Any] | None:
        """Append rows; a future where too much of them is on its way to the store."""
        self._rows += data
        if len(self._rows) >= _SPILL:
            self._stage()
        waiting = [each for each in self._staging if not each.done()]
        return in_background(waiting[0].result) if len(waiting) > _AT_ONCE else None

    def prepare(self) -> Future[tuple[str, ...]]:
        """Return, in the future, the names of what is staged and not committed: it is durable then."""
        if self._rows:
            self._stage()
        self._prepared += self._names
        staging, names = self._staging, tuple(self._prepared)
        self._staging, self._names = [], []

        def wait() -> tuple[str, ...]:
            for each in staging:
                each.result()
            return names

        return in_background(wait)

    def commit(self, epoch: int, handle: Sequence[str]) -> Future[None]:
        """Show what the handle names, unless that has been done."""
        names = list(handle or ())
        self._prepared = [name for name in self._prepared if name not in names]
        old = [name for name, when in self._done.items() if when < epoch and name not in names]
        self._done = {name: when for name, when in self._done.items() if when >= epoch} | dict.fromkeys(names, epoch)

        def show() -> None:
            store = self._store()
            for name in names:
                self._show(store, name)
            store.remove([f"{self._place(name)}.done" for name in old])

        return in_background(show)

    def forget(self, kept: Sequence[Any]) -> None:
        """Remove all that is staged: no process writes now, and nothing is to be committed any more but `kept`, again."""
        stays = {f"{self._place(name)}.done" for handle in kept for name in handle or ()}
        store = self._store()
        store.remove([url for url in store.list(self._staged(self._lineage)) if url not in stays])

    def _show(self, store: ObjectStore, name: str) -> None:
        staged, target = self._place(name), f"{self.url}/{name.rpartition('/')[2]}"
        done = f"{staged}.done"
        if store.list(done):
            return
        if store.copy(staged, target):
            store.write(done, b"")
            store.remove([staged])
        elif not store.list(done) and not store.list(target):
            raise SinkError(
                f"{staged}: the rows to commit are gone; put the object back, or start anew (--restart), and let nothing remove what "
                f"lies below {self.url}/.staged"
            )

    def _stage(self) -> None:
        data = self._header + self._rows
        self._rows.clear()
        now = time.time()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}"
        name = f"{quote(self._lineage, safe='')}/{stamp}-{self._sub_unit}-{secrets.token_hex(8)}{self._suffix}"
        self._names.append(name)
        self._staging.append(in_background(self._writing(self._place(name), data)))

    def _writing(self, url: str, data: bytes) -> Callable[[], None]:
        return lambda: self._store().write(url, data)

    def _place(self, name: str) -> str:
        return f"{self.url}/.staged/{name}"

    def _staged(self, lineage: str) -> str:
        return f"{self.url}/.staged/{quote(lineage, safe='')}"

    def _store(self) -> ObjectStore:
        return ObjectStore.of(SinkError, self.url, self._options)
