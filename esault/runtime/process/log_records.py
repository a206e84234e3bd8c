"""Records that user code logs, from its process to the handlers of the command.

A record travels as JSON through the console pipe, beside the lines that user code prints: so both come in order, and from other
hosts as well. In the command it goes to the logger of the same name, and with it to the handlers that the user's script has
configured there. Its level was looked at where it was logged; levels and filters of the command's loggers count too.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from esault.payload.class_names import TOPOLOGY_MODULES
from esault.runtime.process.console import MarkedStream

__all__ = ["RecordHandler", "RecordReader", "extras", "log_through", "user_name"]

#: the mark of a line that is a piece of a record begins so; its text stands between these two, in one piece or several
_RECORD, _BEGIN, _END = "\x1e", "\x02", "\x03"
#: characters of a record at most: what begins as one and has more is none
_MOST = 8 * 1024 * 1024
#: the module of a topology file, see `Located`: its name, and a digest of its path
_MODULE = re.compile(rf"^{TOPOLOGY_MODULES}(.+)_[0-9a-f]{{8}}(?=\.|$)")
_FIELDS = ("name", "levelno", "levelname", "created", "pathname", "lineno", "funcName", "process", "threadName")
#: attributes that each record has
_KNOWN = {
    *vars(logging.makeLogRecord({})),
    "message",
    "asctime",
    "taskName",
    "unit",
    "sub_unit",
    "run",
    "topology",
    "host",
}


def user_name(name: str) -> str:
    """Return the name of a logger as the user knows it: `words` for the module of words.py."""
    return _MODULE.sub(r"\1", name)


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """Return what the caller has said by `extra`, as JSON takes it."""
    found = {name: value for name, value in vars(record).items() if name not in _KNOWN}
    plain = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in found.items()}


class RecordHandler(logging.Handler):
    """In a process of the run: hands records to the command. `about` is what each says: unit, sub_unit, run, topology, host."""

    def __init__(self, fd: int, mark: str, about: Mapping[str, Any]) -> None:
        super().__init__()
        self._fd, self._mark = fd, mark
        self.about = dict(about)
        self._text = logging.Formatter()

    def rename(self, mark: str, unit: str, sub_unit: int) -> None:
        """Say this of records from now on."""
        self._mark = mark
        self.about |= {"unit": unit, "sub_unit": sub_unit}

    def emit(self, record: logging.LogRecord) -> None:
        """Write it into the pipe; a full one makes the caller wait, as for what it prints."""
        try:
            said = {name: getattr(record, name) for name in _FIELDS}
            said["name"] = user_name(record.name)
            said["msg"] = record.getMessage()
            if record.exc_info and record.exc_info[0] is not None:
                said["exc_text"] = self._text.formatException(record.exc_info)
            elif record.exc_text:
                said["exc_text"] = record.exc_text
            if record.stack_info:
                said["stack_info"] = record.stack_info
            text = json.dumps({**extras(record), **said, **self.about})
            stream = MarkedStream(self._fd, f"{_RECORD}{os.getpid()} {self._mark}")
            stream.write(f"{_BEGIN}{text}{_END}\n")
        except Exception:
            self.handleError(record)


class RecordReader:
    """In the command: takes the lines of the console, and gives records to `record` and all else to `line`."""

    def __init__(self, line: Callable[[str, str], None], record: Callable[[logging.LogRecord], None]) -> None:
        self._line, self._record = line, record
        self._pieces: dict[str, str] = {}

    def __call__(self, mark: str, text: str) -> None:
        """One line."""
        if not mark.startswith(_RECORD):
            self._line(mark, text)
            return
        before = "" if text.startswith(_BEGIN) else self._pieces.pop(mark, "")
        whole = before + text
        if not whole.endswith(_END):
            self._pieces[mark] = whole if len(whole) < _MOST else ""
            return
        self._pieces.pop(mark, None)
        try:
            said = json.loads(whole[len(_BEGIN) : -len(_END)])
            record = logging.makeLogRecord({**said, "args": None})
        except (ValueError, TypeError):  # torn by processes that share a mark
            self._line(mark.partition(" ")[2], whole.strip(_BEGIN + _END))
            return
        record.msecs = (record.created % 1) * 1000
        self._record(record)


def log_through(handler: logging.Handler) -> None:
    """Have all loggers of this process write to this handler alone: those inherited from the command work there.

    Modules of topology files log at the level that was set for the name by which the user knows them.
    """
    logging.root.handlers[:] = [handler]
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.propagate = True
            known = user_name(name)
            if known != name and logger.level == logging.NOTSET:
                logger.setLevel(logging.getLogger(known).level)
