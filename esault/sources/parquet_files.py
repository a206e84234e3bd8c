"""Rows of Parquet files: row groups of a file that begin in the same stretch of it are a split."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.object_store.object_file import ObjectFile
from esault.object_store.stored_object import is_url, without_version
from esault.sources.arrow_columns import ArrowColumns
from esault.sources.batch_reader import BatchReader
from esault.sources.columnar_files import ColumnarFiles
from esault.sources.file_list import unreadable
from esault.sources.object_list import open_object
from esault.topology.split_source import SplitReader

__all__ = ["ParquetFiles"]

#: rows that are taken from their pages at once
_ROWS = 16_384
#: bytes of a footer of which Arrow need not think that they are damage; those of wide tables are large
_THRIFT = 2**31 - 1


class ParquetFiles(ColumnarFiles):
    """The rows of Parquet files, each a dict by the names of the columns; needs `esault[parquet]`. Key: the column named `key`, or what
    the function `key` makes of the row; without it the name of the file.

    They are read and travel as Arrow's columns: a `BatchBolt` with `process_columns` gets them as they are, all else as dicts. Of each
    file only `columns` are read, and the key's; all where it is None.

    `path` is a file, a folder (of which `pattern` is read), a glob, or a list of them. Each stretch of `split_size` bytes of a file is
    a split, with the row groups whose middle is in it: sub-units of the spout share them, and their number may change while they read.
    Rows of a split stay in order. A run that goes on needs the same `split_size`. `every`: seconds between two looks for new files,
    which have to be whole when their names appear; None: those that are there at the start, and then the run ends.

    `path` may also name objects, such as "s3://bucket/prefix": see docs/how-to/object-stores.md. `storage_options` go to the store's client.

    Timestamps in nanoseconds come in microseconds; where that is not all of one, the run stops. Columns of types that have no plain
    Python object are refused by name.
    """

    delivery_guarantee: ClassVar[str] = "exactly once: a place in each split is kept in checkpoints"

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        key: str | Callable[[dict[str, Any]], Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        every: float | None = None,
        pattern: str = "**/*.parquet",
        split_size: int = 32 * 1024 * 1024,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, key, columns=columns, every=every, pattern=pattern, storage_options=storage_options)
        if not isinstance(split_size, int) or isinstance(split_size, bool) or split_size < 1:
            raise TopologyError(f"ParquetFiles: split_size={split_size!r}: write a number of bytes of at least 1")
        self._size = split_size

    def _check_file(self, name: str, size: int) -> None:
        self._opened(name, 0, size + 1).close()

    def splits(self) -> Sequence[str] | None:
        """Return the names of all files, sorted, with each stretch of their bytes: `name[begin:end]`."""
        found = self._files.splits()
        if found is None:
            return None
        return [
            f"{name}[{begin}:{begin + self._size}]"
            for name, size in found.items()
            for begin in range(0, size, self._size)
        ]

    def open_split(self, id: str, position: Any) -> SplitReader[Any, dict[str, Any]]:
        """Return a reader of this stretch of a file from (row group, row in it) on. Raises SourceError."""
        name, _, stretch = id.removesuffix("]").rpartition("[")
        begin, _, end = stretch.partition(":")
        return BatchReader(lambda: self._opened(name, int(begin), int(end)), position, far=is_url(name))

    def _opened(self, name: str, begin: int, end: int) -> _ParquetFile:
        file = open_object(name, self._files.storage_options, blocks=False) if is_url(name) else name
        return _ParquetFile(file, without_version(name), begin, end, self._columns)


class _ParquetFile:
    """The row groups of a file whose middle is in a stretch of its bytes."""

    def __init__(self, file: str | ObjectFile, name: str, begin: int, end: int, columns: ArrowColumns) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = name
        try:
            self._file = pq.ParquetFile(
                file, pre_buffer=False, thrift_string_size_limit=_THRIFT, thrift_container_size_limit=_THRIFT
            )
        except pa.ArrowInvalid as error:
            raise _damaged(name, error) from None
        except OSError as error:
            raise unreadable(name, error) from error
        try:
            metadata = self._file.metadata
            middles = [_middle(metadata.row_group(i)) for i in range(metadata.num_row_groups)]
            within = [i for i, middle in enumerate(middles) if begin <= middle < end]
            self.first = within[0] if within else 0
            self.last: int | None = within[-1] + 1 if within else 0
            self.shape = columns.of(name, self._file.schema_arrow, name)
        except BaseException:
            self.close()
            raise

    def batches(self, group: int) -> Iterator[Any]:
        import pyarrow as pa

        read = self.shape.read
        try:
            yield from self._file.iter_batches(_ROWS, row_groups=[group], columns=read, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(self.name, error) from error

    def close(self) -> None:
        self._file.close(force=True)


def _middle(group: Any) -> int:
    """The byte in the middle of a row group, in its file."""
    if not group.num_columns:
        return 0
    first = group.column(0)
    begins = [first.data_page_offset, first.dictionary_page_offset]
    begin = min(offset for offset in begins if offset)
    size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    return int(begin + size // 2)


def _damaged(name: str, error: Exception) -> SourceError:
    return SourceError(
        f"{name}: is no readable Parquet file ({error}); leave out what is none with pattern=, or copy it again"
    )
