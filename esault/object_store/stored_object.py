"""One version of an object, and the name that stands for it in positions and splits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import unquote

__all__ = ["StoredObject", "is_url", "local_path", "without_version"]

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.I)
#: what stores say of an object that changes when it is replaced: the first one that there is
_VERSIONS = ("ETag", "etag", "generation", "LastModified", "last_modified", "updated", "mtime", "created")
_PLAIN = re.compile(r"[0-9A-Za-z.-]+")


def is_url(path: str) -> bool:
    """Return whether it is an address such as s3://bucket/key, and no path of this machine."""
    return _URL.match(path) is not None


def local_path(path: str) -> str:
    """Return the path that a file:// address means; any other text as it is."""
    return unquote(path[7:].removeprefix("localhost")) if path[:7].lower() == "file://" else path


def without_version(name: str) -> str:
    """Return the address in a name of `StoredObject`; the name of a file as it is."""
    return name.rpartition("#")[0] if is_url(name) else name


class StoredObject(NamedTuple):
    """One version of an object; `size` in bytes, `version` a text that is another one once it is replaced."""

    url: str
    size: int
    version: str

    @classmethod
    def described(cls, url: str, info: Mapping[str, Any]) -> StoredObject:
        """Return the one that fsspec describes so."""
        said = next((info[field] for field in _VERSIONS if info.get(field) is not None), "")
        # a listing may give seconds where a look at one gives a datetime
        version = str(said.timestamp() if isinstance(said, datetime) else said).strip('"')
        if not _PLAIN.fullmatch(version):
            version = hashlib.sha256(version.encode()).hexdigest()[:16]
        return cls(url, int(info.get("size") or 0), version)

    @classmethod
    def named(cls, name: str) -> StoredObject:
        """Return the one that `name` stands for."""
        url, _, rest = name.rpartition("#")
        size, _, version = rest.partition("-")
        return cls(url, int(size), version)

    @property
    def name(self) -> str:
        """Its address with its version: a position in it holds for no other."""
        return f"{self.url}#{self.size}-{self.version}"
