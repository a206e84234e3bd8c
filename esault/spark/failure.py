"""Errors that Spark raises, and what they say to people."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator

__all__ = ["BEGIN", "END", "failures", "said", "told_once", "without_told"]

#: around what a worker says of the error that ended a topology
BEGIN, END = "<<esault>>", "<</esault>>"
#: with this a worker of pyspark begins the traceback of what was raised while it gave its rows
_WORKER_FAILED = "PySpark worker failed with exception:"

#: where pyspark logs what it raises, with Java's stack: 10 kB in a line of JSON
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
#: lines of a Java exception that say something; the rest are places in Spark
_LINES = 4


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a call of Spark may raise."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError)


def said(error: BaseException) -> str:
    """The message without the places in Spark's own code: its first line and the causes."""
    lines = str(error).splitlines()
    first, rest = lines[:1], lines[1:]
    kept = [line.strip() for line in rest if not line.lstrip().startswith(("at ", "... ")) and line.strip()]
    causes = [line for line in kept if line.startswith("Caused by: ")] or kept
    return "\n".join([*first, *causes[:_LINES]])


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.endswith("py4j/java_gateway.py")


@contextlib.contextmanager
def told_once() -> Iterator[None]:
    """Keep pyspark and py4j from logging what they raise, Ctrl-C among it: the exception says it."""
    from pyspark.logger import PySparkLogger

    root = logging.getLogger()
    root.addFilter(_not_of_py4j)  # which logs a KeyboardInterrupt by the functions of the module
    before = {}
    for name in _LOGGERS:
        logger = PySparkLogger.getLogger(name)
        before[logger] = logger.level
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root.removeFilter(_not_of_py4j)
        for logger, level in before.items():
            logger.setLevel(level)


def without_told(lines: Iterable[str]) -> Iterator[str]:
    """Yield what workers print, without the tracebacks that hold an error between our marks: the driver tells that one, once."""
    held: list[str] = []
    marked = after = False
    for line in lines:
        if held:
            held.append(line)
            marked = marked or BEGIN in line
            if marked and END in line:
                held, marked, after = [], False, True
            elif not marked and not line.strip():  # the end of a traceback of something else
                yield from held
                held = []
        elif line.startswith(_WORKER_FAILED):
            held, after = [line], False
        elif not (after and not line.strip()):
            after = False
            yield line
    yield from held
