"""Places of state: folders of this machine, and prefixes of an object store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from esault.errors import CheckpointError
from esault.object_store.object_path import ObjectPath
from esault.object_store.stored_object import is_url, local_path
from esault.state.files import sync_file, write_whole

__all__ = ["Place", "link", "load_client", "place_of", "put", "remove_tree"]

Place = Path | ObjectPath


def place_of(text: str | Path) -> Place:
    """Return the place that is meant: an address such as s3://bucket/folder, or the path of a folder."""
    if isinstance(text, str):
        text = local_path(text)
        if is_url(text):
            return ObjectPath(text, CheckpointError)
    return Path(text)


def load_client(place: Place) -> None:
    """Load the library of an object store, so that processes that are forked from this one have it: each takes a second for that otherwise."""
    if isinstance(place, ObjectPath):
        place.load()


def put(place: Place, data: bytes) -> None:
    """Put a file in its place, durable, in one step. Raises OSError, CheckpointError."""
    if isinstance(place, ObjectPath):
        place.write_bytes(data)
    else:
        write_whole(place, data)


def remove_tree(place: Place) -> None:
    """Remove a folder, if there is one, with all in it. Raises OSError, CheckpointError."""
    if isinstance(place, ObjectPath):
        place.remove_all()
    elif place.exists():
        shutil.rmtree(place)


def link(source: Place, target: Place) -> None:
    """Give a file that never changes a second name; or copy it, durably, where that cannot be. Raises OSError, CheckpointError."""
    if isinstance(target, ObjectPath):
        if isinstance(source, Path):
            target.upload(source)
        elif source.protocol == target.protocol:
            target.copy_from(source)
        else:
            target.write_bytes(source.read_bytes())
        return
    target.unlink(missing_ok=True)
    if isinstance(source, Path):
        try:
            os.link(source, target)
            return
        except FileNotFoundError:
            raise
        except OSError:
            pass  # another file system, or one without links
    with source.open("rb") as from_, open(target, "xb") as to:
        shutil.copyfileobj(from_, to, 1 << 20)
    target.chmod(0o600)
    sync_file(target)
