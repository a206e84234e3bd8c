"""The base of sources that read files of columns by Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import TopologyError
from esault.sources.arrow_columns import ArrowColumns, arrow
from esault.sources.file_list import FILES_AT_ONCE, FileList
from esault.topology.arguments import check_seconds
from esault.topology.context import Context
from esault.topology.split_source import SplitSource

__all__ = ["ColumnarFiles"]


class ColumnarFiles(SplitSource[Any, dict[str, Any]]):
    """A list of files and of columns that are read. Subclasses open them."""

    extra: ClassVar[str] = "parquet"
    bounded: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        key: str | Callable[[dict[str, Any]], Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
        every: float | None = None,
        pattern: str = "**/*",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        who = type(self).__name__
        try:
            self._files = FileList(path, pattern, storage_options)
        except TopologyError as error:
            raise TopologyError(f"{who}: {error}") from None
        self._columns = ArrowColumns(who, key, columns)
        self.discovery_interval = None if every is None else check_seconds(who, "every", every)
        self.splits_at_once = FILES_AT_ONCE

    def check(self) -> None:
        """Raises SourceError where a file is missing or cannot be read, and where the first one has not the columns."""
        arrow(type(self).__name__)
        sizes = self._files.measure(growing=self.discovery_interval is not None, whole=True)
        for name, size in list(sizes.items())[:1]:
            self._check_file(name, size)

    def pieces(self) -> list[int] | None:
        """Return the sizes of the files as `check` has found them; None where it is looked for new ones."""
        return self._files.sizes

    def _check_file(self, name: str, size: int) -> None:
        """Raises SourceError where it cannot be read, or has not the columns."""
        raise NotImplementedError

    def open(self, context: Context) -> None:
        """Open nothing: files are opened one by one."""
        arrow(type(self).__name__)
