"""Records as text for people or JSON for services, on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TextIO

from esault.payload.json_text import strict_json
from esault.runtime.process.log_records import extras, user_name

__all__ = [
    "LOG_FORMAT",
    "PRINTED",
    "ROTATED",
    "JsonFormatter",
    "StderrHandler",
    "TextFormatter",
    "configure",
    "configure_file",
    "deliver",
    "say",
    "short_line",
]


#: in the environment of a node's host processes: its --log-format
LOG_FORMAT = "ESAULT_NODE_LOG_FORMAT"
#: the logger of lines that user code prints, where these are records as well
PRINTED = "print"
#: bytes of a rotated log, and how many of those before it are kept
ROTATE_AT, ROTATED = 10_000_000, 5


class TextFormatter(logging.Formatter):
    """`[count/3] WARNING words: text`; with `dated`, the time (UTC) and the run before it."""

    def __init__(self, dated: bool) -> None:
        super().__init__("%(message)s")
        self._dated = dated

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record; its traceback follows."""
        head = f"{record.levelname} {user_name(record.name)}: "
        where = _mark(record)
        if where:
            head = f"[{where}] {head}"
        if self._dated:
            run = getattr(record, "run", "")
            head = f"{_time(record)} {run + ' ' if run else ''}{head}"
        return head + super().format(record)


class JsonFormatter(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `message`, `run`, `topology`, `unit`, `sub_unit`, `host`, `process`, the
    caller's `extra`, and `exception` where there is one."""

    def __init__(self) -> None:
        super().__init__()
        #: of records of the command itself
        self.about: dict[str, Any] = {}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": user_name(record.name),
            "message": record.getMessage(),
            **self.about,
            **{name: getattr(record, name) for name in _ABOUT if hasattr(record, name)},
            "process": record.process,
        }
        said.update({name: value for name, value in extras(record).items() if name not in said})
        if record.exc_info and record.exc_info[0] is not None:
            said["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            said["exception"] = record.exc_text
        if record.stack_info:
            said["stack"] = record.stack_info
        return strict_json(said)


_ABOUT = ("run", "topology", "unit", "sub_unit", "host")


def _mark(record: logging.LogRecord) -> str:
    unit = getattr(record, "unit", "")
    return f"{unit}/{record.sub_unit}" if unit and hasattr(record, "sub_unit") else str(unit)


def short_line(record: logging.LogRecord) -> tuple[str, str]:
    """Return the mark of a record and its text, as of a line that was printed."""
    return _mark(record), f"{record.levelname} {user_name(record.name)}: {record.getMessage()}"


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error: on a terminal to what stands for it now, which a live view puts above its table."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self._first = sys.stderr

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The stream that the next line goes to."""
        return sys.stderr if self._first is None or _is_terminal(self._first) else self._first


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it was closed
        return True


def configure(level: str | int, form: str, dated: bool = False) -> logging.Handler:
    """Have the command's root logger write to standard error: `form` is "text" or "json". Return its handler.

    Text begins with the time where no person looks on, and with `dated` always."""
    handler = StderrHandler()
    dated = dated or not _is_terminal(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(dated))
    logging.basicConfig(level=level.upper() if isinstance(level, str) else level, handlers=[handler])
    return handler


def configure_file(level: str, path: str) -> logging.Handler:
    """Have the command's root logger write JSON to a file that is rotated. Return its handler."""
    from logging.handlers import RotatingFileHandler  # few runs are detached

    handler = RotatingFileHandler(path, maxBytes=ROTATE_AT, backupCount=ROTATED, encoding="utf-8")
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    return handler


def say(
    handler: logging.Handler,
    name: str,
    text: str,
    level: int = logging.INFO,
    cause: BaseException | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Have a handler write what the command itself says, whatever the level; with the traceback of `cause`."""
    said: dict[str, Any] = {"name": name, "levelno": level, "levelname": logging.getLevelName(level), "msg": text}
    if cause is not None:
        said["exc_info"] = (type(cause), cause, cause.__traceback__)
    handler.handle(logging.makeLogRecord({**said, **(about or {})}))


def deliver(record: logging.LogRecord, fallback: bool = True) -> None:
    """Give a record of a process of the run to the command's handlers; with `fallback`, to standard error where there are none."""
    logger = logging.getLogger(record.name)
    if not logger.isEnabledFor(record.levelno):
        return
    if logger.hasHandlers():
        logger.handle(record)
    elif fallback:
        handler = StderrHandler()
        handler.setFormatter(TextFormatter(dated=False))
        handler.handle(record)
