"""Input of sources of text: the files that the user named, and how their bytes become lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from esault.errors import TopologyError
from esault.sources.file_list import FileList
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally

__all__ = ["TextInput"]


class TextInput:
    """Files, their format as lines, and the count of what is left out of them. Raises TopologyError, naming `source`."""

    def __init__(
        self,
        source: str,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        pattern: str,
        encoding: str,
        errors: str,
        max_line: int,
        on_long_line: str,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            self.files = FileList(path, pattern, storage_options)
            self.form = LineFormat(encoding, errors, max_line, on_long_line)
        except TopologyError as error:
            raise TopologyError(f"{source}: {error}") from None
        self.tally = LineTally()

    def open(self, name: str, offset: int) -> LineFile:
        """Return this file, from byte `offset` of its unpacked content on. Raises SourceError."""
        return LineFile(name, self.form, self.tally, offset, storage_options=self.files.storage_options)
