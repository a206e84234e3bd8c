"""The store, by clients of fsspec that differ from one another."""

from __future__ import annotations

import pytest

from esault import SourceError
from esault.object_store.object_path import ObjectPath

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402


class LikeAzure(MemoryFileSystem):
    """As adlfs: of one blob `find` gives a list of its name, also where details are asked for."""

    protocol = "like-azure"
    store: dict = {}
    pseudo_dirs = [""]

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        found = super().find(path, maxdepth, withdirs, detail=detail, **options)
        return list(found) if self.isfile(path) else found


def test_one_blob_of_azure_is_read_by_ranges(monkeypatch):
    fsspec.register_implementation("like-azure", LikeAzure, clobber=True)
    path = ObjectPath("like-azure://box/numbers", SourceError)
    path.write_bytes(b"0123456789")
    with path.open() as file:
        file.seek(4)
        assert file.read(3) == b"456"
