"""What is said when user code raises."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

__all__ = ["LetterBox", "UserError", "traceback_of"]

_ENGINE = str(Path(__file__).parent)


class UserError(Exception):
    """User code raised under the policy `fail`; the text is for people and ends with the user's traceback."""


class LetterBox(Protocol):
    """Where dead letters go; durable after `sync`."""

    def put(self, record: dict[str, Any]) -> None:
        """Keep one record of plain values."""
        ...

    def sync(self) -> None:
        """Make all that was put durable."""
        ...


def traceback_of(error: BaseException) -> str:
    """The traceback as the user would see it in a plain script: without the engine's own first frames."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_ENGINE):
        tb = tb.tb_next
    return "".join(traceback.format_exception(type(error), error, tb)).rstrip()
