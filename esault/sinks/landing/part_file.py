"""A part of a landed table, for readers of Parquet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import BinaryIO

from esault.errors import SinkError
from esault.object_store.object_path import ObjectPath
from esault.object_store.stored_object import is_url

__all__ = ["part_file"]


@contextlib.contextmanager
def part_file(path: str) -> Iterator[str | BinaryIO]:
    """A part for pyarrow: its path, or the object at an address, open. Raises FileNotFoundError, SinkError."""
    if not is_url(path):
        yield path
        return
    with ObjectPath(path, SinkError).open() as file:
        yield file
