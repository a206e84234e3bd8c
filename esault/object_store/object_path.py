"""A folder or an object of a store with the methods of a `pathlib.Path` that code needs which works on either."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from esault.errors import EsaultError
from esault.object_store.object_file import ObjectFile
from esault.object_store.store import ObjectStore

__all__ = ["ObjectPath"]


class ObjectPath:
    """An address. What is missing comes as FileNotFoundError, errors of the store as `error`. The store is found anew in each process."""

    def __init__(self, url: str, error: type[EsaultError]) -> None:
        self._protocol, _, place = url.partition("://")
        self._path = PurePosixPath(place)
        self._error = error

    def __str__(self) -> str:
        return f"{self._protocol}://{self._path}"

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> ObjectPath:
        return self._at(self._path / name)

    def _at(self, path: PurePosixPath) -> ObjectPath:
        return ObjectPath(f"{self._protocol}://{path}", self._error)

    @property
    def protocol(self) -> str:
        """Return the kind of the store."""
        return self._protocol

    @property
    def name(self) -> str:
        """Return its last part."""
        return self._path.name

    @property
    def stem(self) -> str:
        """Return its last part without the ending."""
        return self._path.stem

    @property
    def parent(self) -> ObjectPath:
        """Return the folder that it is in."""
        return self._at(self._path.parent)

    def absolute(self) -> ObjectPath:
        """Return the same: there is no other."""
        return self

    def load(self) -> None:
        """Load the library of the store, but make no client yet. An error of it comes with the first question."""
        with contextlib.suppress(ImportError, ValueError):
            from fsspec import get_filesystem_class

            get_filesystem_class(self._protocol)

    def children(self) -> dict[str, int | None]:
        """Return what is in this folder: name -> bytes, None for a folder."""
        return self._store.children(str(self))

    def iterdir(self) -> Iterator[ObjectPath]:
        """Yield what is in this folder."""
        return (self / name for name in self.children())

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Yield what is in this folder and has such a name; the pattern has no slash."""
        return (self / name for name in self.children() if fnmatchcase(name, pattern))

    def is_dir(self) -> bool:
        """Return whether anything is below it: a store has no empty folders."""
        return bool(self.children())

    def exists(self) -> bool:
        """Return whether there is such an object."""
        return self._store.modified(str(self)) is not None

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a store has no folders."""

    def read_bytes(self) -> bytes:
        """Return the whole object. Raises FileNotFoundError."""
        found = self._store.read(str(self))
        if found is None:
            raise self._missing()
        return found

    def read_text(self) -> str:
        """Return the whole object as text. Raises FileNotFoundError."""
        return self.read_bytes().decode()

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open it for reading, by ranges of the version that is there now. Raises FileNotFoundError."""
        assert mode == "rb"
        found = self._store.list(str(self)).get(str(self))
        if found is None:
            raise self._missing()
        return cast(BinaryIO, io.BufferedReader(ObjectFile(self._store, found.name), 1 << 20))

    def touch(self) -> None:
        """Put an empty object there."""
        self.write_bytes(b"")

    def write_bytes(self, data: bytes) -> None:
        """Put an object there, in place of what is, durable and in one step."""
        self._store.write(str(self), data)

    def write_absent(self, data: bytes) -> bool:
        """Put an object there, if none is; return whether it is this one."""
        return self._store.write_absent(str(self), data)

    def upload(self, file: Path) -> None:
        """Put the content of a file there, durable and in one step."""
        self._store.upload(str(self), str(file))

    def copy_from(self, source: ObjectPath) -> None:
        """Have the store copy an object here. Raises FileNotFoundError."""
        if not self._store.copy(str(source), str(self)):
            raise source._missing()

    def unlink(self, missing_ok: bool = True) -> None:
        """Remove the object, if there is one."""
        self._store.remove([str(self)])

    def remove_all(self) -> None:
        """Remove the object and all below it."""
        self._store.remove([str(self), *self._store.list(str(self))])

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    @property
    def _store(self) -> ObjectStore:
        return ObjectStore.of(self._error, str(self), None)  # that of this process
