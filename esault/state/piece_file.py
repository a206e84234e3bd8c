"""A file with the state of some keys: what one sub-unit wrote for one checkpoint.

```
"eSaultST" format(u16)                        big-endian throughout
length(u32) crc32(u32) block                  a packed tuple of (key, state); state is None where there is none any more
...
0(u32) keys(u32)                              the end: without it the file is half of one
length(u32) crc32(u32) schema                 since format 2: what the classes in it look like, packed
```
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from esault.errors import CheckpointError, FrameError
from esault.messages.checkpoint import Piece
from esault.payload.codec import Codec
from esault.payload.schema import Schema
from esault.state.files import private, sync_folder
from esault.state.place import Place

__all__ = ["FORMAT", "PieceWriter", "check_piece", "read_piece", "read_schema"]

MAGIC, FORMAT = b"eSaultST", 2
#: bytes of a block, about
BLOCK_BYTES = 256 << 10
_HEAD = struct.Struct(">8sH")
_BLOCK = struct.Struct(">II")


class PieceWriter:
    """Writes beside the file's place, and puts it there when all is written."""

    def __init__(self, path: Path, base: bool, codec: Codec) -> None:
        """Raises CheckpointError where nothing can be written."""
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._base = base
        self._codec = codec
        self._items: list[tuple[Any, bytes | None]] = []
        self._bytes = 0
        self._keys = 0
        self._size = 0
        self._checksum = 0
        try:
            self._file = open(self._part, "wb", 1 << 20, opener=private)  # noqa: SIM115 - `finish` or `drop` closes it
            self._write(_HEAD.pack(MAGIC, FORMAT))
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"the state cannot be written to {self._path.parent}: {error.strerror or error}; free space or mend permissions. "
            "The checkpoints that are complete stay as they are"
        )

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._size += len(data)
        self._checksum = crc32(data, self._checksum)

    def add(self, key: Any, state: bytes | None) -> None:
        """The packed state of a key; None: there is none any more. Raises CheckpointError."""
        self._items.append((key, state))
        self._keys += 1
        self._bytes += len(state or b"") + 16
        if self._bytes >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        block = self._codec.pack(tuple(self._items))
        self._items.clear()
        self._bytes = 0
        try:
            self._write(_BLOCK.pack(len(block), crc32(block)))
            self._write(block)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error

    def finish(self, schema: Schema) -> Piece:
        """Make the file durable, in its place, with what the classes in it look like. Raises CheckpointError."""
        self.end(schema)
        return self.put()

    def end(self, schema: Schema) -> None:
        """Write the end of the file, with what the classes in it look like. Raises CheckpointError."""
        if self._items:
            self._flush()
        block = self._codec.pack(schema)
        try:
            self._write(_BLOCK.pack(0, self._keys))
            self._write(_BLOCK.pack(len(block), crc32(block)))
            self._write(block)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error

    def put(self) -> Piece:
        """Make the file durable, in its place: any thread may wait for the disk so. Raises CheckpointError."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error
        return Piece(self._path.name, self._base, self._keys, self._size, self._checksum)

    def drop(self) -> None:
        """Give it up; nothing stays."""
        try:
            self._file.close()
        except OSError:
            pass  # it could not be written: there is nothing to lose
        self._part.unlink(missing_ok=True)


def _damaged(path: Place, what: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged: {what}")


def check_piece(path: Place, piece: Piece) -> None:
    """Check that the file is, byte for byte, what the manifest says. Raises CheckpointError."""
    checksum, size = 0, 0
    with _reading(path) as source:
        head = source.read(_HEAD.size)
        _check_head(path, head)
        data = head
        while data:
            size += len(data)
            checksum = crc32(data, checksum)
            data = source.read(1 << 20)
    if size != piece.size:
        raise _damaged(path, f"it has {size:,} bytes, and {piece.size:,} were written")
    if checksum != piece.checksum:
        raise _damaged(path, "its checksum is another one")


def _check_head(path: Place, head: bytes) -> int:
    if len(head) < _HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise CheckpointError(f"{path} is no state file of eSault")
    version: int = struct.unpack(">H", head[len(MAGIC) :])[0]
    if version > FORMAT:
        raise CheckpointError(
            f"{path} is in format {version}, written by a newer eSault; this one reads up to {FORMAT}: install the newer one"
        )
    return version


def _schema_block(path: Place, source: BinaryIO) -> bytes:
    said = source.read(_BLOCK.size)
    block = source.read()
    if len(said) < _BLOCK.size or _BLOCK.unpack(said) != (len(block), crc32(block)):
        raise _damaged(path, "the checksum of what it says of its classes is another one")
    return block


@contextmanager
def _reading(path: Place) -> Iterator[BinaryIO]:
    """The file, opened; what is wrong with it or in it becomes a CheckpointError."""
    try:
        with path.open("rb") as source:
            yield source
    except FrameError as error:
        raise _damaged(path, str(error)) from error
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error


def _block_head(path: Place, source: BinaryIO) -> tuple[int, int]:
    """The length of the next block and its checksum; length 0 at the end, with the number of keys."""
    said = source.read(_BLOCK.size)
    if len(said) < _BLOCK.size:
        raise _damaged(path, "it ends in the middle")
    length, told = _BLOCK.unpack(said)
    return length, told


def read_schema(path: Place) -> Schema | None:
    """Return what the classes in it looked like; None: a version that did not say wrote it. Raises CheckpointError."""
    with _reading(path) as source:
        if _check_head(path, source.read(_HEAD.size)) < 2:
            return None
        while length := _block_head(path, source)[0]:
            source.seek(length, os.SEEK_CUR)
        found: Schema = Codec().unpack(_schema_block(path, source))
        return found


def read_piece(path: Place) -> Iterator[tuple[Any, bytes | None]]:
    """(key, packed state or None) in the order in which they were written. Raises CheckpointError at the first thing amiss."""
    codec = Codec()
    keys = 0
    with _reading(path) as source:
        version = _check_head(path, source.read(_HEAD.size))
        while True:
            length, told = _block_head(path, source)
            if not length:
                break
            block = source.read(length)
            if len(block) < length:
                raise _damaged(path, "it ends in the middle")
            if crc32(block) != told:
                raise _damaged(path, f"the checksum of the block behind key {keys:,} is another one")
            items = codec.unpack(block)
            yield from items
            keys += len(items)
        if keys != told:
            raise _damaged(path, f"{keys:,} keys are there, and {told:,} were written")
        if version > 1:
            _schema_block(path, source)
