"""Objects that a source reads: an address, a prefix or a glob of them to names, and each one opened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from fnmatch import fnmatchcase
from typing import Any

from esault.background import in_background
from esault.errors import SourceError, TopologyError
from esault.object_store.object_file import ObjectFile
from esault.object_store.store import ObjectStore
from esault.object_store.stored_object import StoredObject

__all__ = ["ObjectList", "open_object"]

_MAGIC = re.compile(r"[*?[]")
#: seconds that a source waits for a look at what there is, before it goes on with what it knows
_LONG = 0.2


class ObjectList:
    """The objects that addresses stand for: each an object, a prefix (of which `pattern` is read) or a glob.

    Their names are those of `StoredObject`: with the version, so that one that is replaced is another one.
    """

    def __init__(self, urls: Sequence[str], pattern: str, storage_options: Mapping[str, Any] | None) -> None:
        for url in urls:
            if not re.match(r"[a-z0-9+.-]+://[^/]", url):
                raise TopologyError(f"path={url!r}: write s3://bucket/prefix, the protocol in small letters")
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise TopologyError(
                f"storage_options={type(storage_options).__name__}: write a dict, such as {{'anon': True}}"
            )
        self._urls, self._pattern, self._options = [url.rstrip("/") for url in urls], pattern, storage_options
        self._known: dict[str, int] | None = None
        self._looking: Future[dict[str, int]] | None = None

    @property
    def named(self) -> bool:
        """Return whether there are addresses at all."""
        return bool(self._urls)

    def sizes(self) -> dict[str, int]:
        """Return the names of all objects there are now, with their sizes; waits for a store that is away."""
        return {name: size for url in self._urls for name, size in self._found(url, patient=True).items()}

    def known_sizes(self) -> dict[str, int] | None:
        """Return them as `sizes` does; those of the last look where this one takes long, in the background. None: there was none yet."""
        if not self._urls:
            return {}
        looking = self._looking = self._looking or in_background(self.sizes)
        if wait([looking], _LONG).done:
            self._looking = None
            self._known = looking.result()
        return self._known

    def measure(self, growing: bool, patient: bool) -> dict[str, int]:
        """Return the names with their sizes. Raises SourceError where there is no such bucket, and, unless `growing`, nothing to read."""
        found: dict[str, int] = {}
        for url in self._urls:
            sizes = self._found(url, patient)
            if not sizes and not growing:
                raise SourceError(self._missing(url))
            for name in sorted(sizes)[:1]:  # listing may be allowed and reading not
                first = StoredObject.named(name)
                ObjectStore.of(SourceError, url, self._options).fetch(first, 0, 1)
            found |= sizes
        return found

    def _found(self, url: str, patient: bool) -> dict[str, int]:
        path = url.partition("://")[2]
        base = url
        if _MAGIC.search(path):
            base = url[: url.index("://") + 3 + _MAGIC.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
            if base.endswith(":/"):
                raise SourceError(f"{url}: name the bucket; only what is in it may be a pattern")
        objects = ObjectStore.of(SourceError, url, self._options).list(base, patient)
        if url in objects:  # also a name that looks like a glob: data[1].txt
            found = [objects[url]]
        else:
            pattern = self._pattern if base == url else url[len(base) + 1 :]
            parts = pattern.split("/")
            found = [each for name, each in objects.items() if _fits(name[len(base) + 1 :].split("/"), parts)]
        return {each.name: each.size for each in found}

    def _missing(self, url: str) -> str:
        if _MAGIC.search(url):
            return f"{url}: no object fits this glob; check the spelling"
        return (
            f"{url}: there is no such object, and none below it that fits pattern={self._pattern!r}; check the spelling"
        )


def open_object(name: str, storage_options: Mapping[str, Any] | None, blocks: bool = True) -> ObjectFile:
    """Return the object of this name, open for reading. Nothing is fetched yet; errors are SourceErrors."""
    return ObjectFile(ObjectStore.of(SourceError, name, storage_options), name, blocks)


def _fits(parts: list[str], pattern: list[str]) -> bool:
    """Return whether a name fits, as Python's `glob` has it: hidden ones only where the pattern says so."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(parts) and not any(part.startswith(".") for part in parts)
        for passed in range(len(parts)):
            if _fits(parts[passed:], pattern[1:]):
                return True
            if parts[passed].startswith("."):
                break
        return False
    if not parts or (parts[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
