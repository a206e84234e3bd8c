"""Rows of Arrow's files (IPC, also called Feather): each file is a split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from esault.errors import SourceError
from esault.object_store.stored_object import is_url, without_version
from esault.sources.arrow_columns import ArrowColumns
from esault.sources.batch_reader import BatchReader
from esault.sources.columnar_files import ColumnarFiles
from esault.sources.file_list import unreadable
from esault.sources.object_list import open_object
from esault.topology.split_source import SplitReader

__all__ = ["ArrowFiles"]


class ArrowFiles(ColumnarFiles):
    """The rows of Arrow's files, each a dict by the names of the columns; needs `esault[parquet]`. They may be files (Feather version 2) or
    streams. Key: the column named `key`, or what the function `key` makes of the row; without it the name of the file.

    They are read and travel as Arrow's columns: a `BatchBolt` with `process_columns` gets them as they are, all else as dicts. Of each
    file only `columns` come, and the key's; all where it is None.

    `path` is a file, a folder (of which `pattern` is read), a glob, or a list of them. Each file is a split: sub-units of the spout
    share them, and their number may change while they read. Rows of a file stay in order. `every`: seconds between two looks for new
    files, which have to be whole when their names appear; None: those that are there at the start, and then the run ends.

    `path` may also name objects, such as "s3://bucket/prefix": see docs/how-to/object-stores.md. `storage_options` go to the store's client.

    Timestamps in nanoseconds come in microseconds; where that is not all of one, the run stops. Columns of types that have no plain
    Python object are refused by name.
    """

    delivery_guarantee: ClassVar[str] = "exactly once: a place in each file is kept in checkpoints"

    def _check_file(self, name: str, size: int) -> None:
        self._opened(name).close()

    def splits(self) -> Sequence[str] | None:
        """Return the names of all files, sorted."""
        found = self._files.splits()
        return None if found is None else list(found)

    def open_split(self, id: str, position: Any) -> SplitReader[Any, dict[str, Any]]:
        """Return a reader of this file from (record batch, row in it) on. Raises SourceError."""
        return BatchReader(lambda: self._opened(id), position, far=is_url(id))

    def _opened(self, id: str) -> _ArrowFile:
        import pyarrow as pa

        name = without_version(id)
        try:
            file = pa.PythonFile(open_object(id, self._files.storage_options)) if is_url(id) else pa.OSFile(id)
            return _ArrowFile(file, name, self._columns)
        except pa.ArrowInvalid as error:
            raise _damaged(name, error) from None
        except OSError as error:
            raise unreadable(name, error) from error


class _ArrowFile:
    """The record batches of a file, or of a stream, which are only known when it has been read to its end."""

    first = 0

    def __init__(self, source: Any, name: str, columns: ArrowColumns) -> None:
        self.name = name
        self._source = source
        try:
            start = self._source.read(6)
            if start[:4] == b"FEA1":
                raise SourceError(f"{name}: is Feather version 1; write it anew with pyarrow.feather.write_feather")
            self._is_stream = start != b"ARROW1"
            self._source.seek(0)
            self._reader = self._open(None)
            self.shape = columns.of(name, self._reader.schema, name)
            self.last: int | None = None if self._is_stream else self._reader.num_record_batches
            names = self._reader.schema.names
            if len(self.shape.read) < len(names):
                self._source.seek(0)
                self._reader = self._open([names.index(column) for column in self.shape.read])
        except BaseException:
            self.close()
            raise
        #: of a stream: the next one that its reader gives
        self._next = 0

    def batches(self, group: int) -> Iterator[Any] | None:
        import pyarrow as pa

        try:
            if not self._is_stream:
                return iter([self._reader.get_batch(group)])
            while True:
                batch = self._reader.read_next_batch()
                self._next += 1
                if self._next > group:
                    return iter([batch])
        except StopIteration:
            return None
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(self.name, error) from error

    def close(self) -> None:
        self._source.close()

    def _open(self, fields: list[int] | None) -> Any:
        import pyarrow as pa
        from pyarrow import ipc

        options = ipc.IpcReadOptions(
            use_threads=False, **({} if fields is None else {"included_fields": sorted(fields)})
        )
        return (ipc.open_stream if self._is_stream else pa.ipc.open_file)(self._source, options=options)


def _damaged(name: str, error: Exception) -> SourceError:
    return SourceError(
        f"{name}: is no readable file of Arrow's ({error}); leave out what is none with pattern=, or copy it again"
    )
