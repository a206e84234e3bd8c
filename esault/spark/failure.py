"""Errors that Spark raises, and what they say to people."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from esault.errors import EsaultError

__all__ = [
    "BEGIN",
    "END",
    "JavaDied",
    "failures",
    "gone",
    "is_alive",
    "java_death",
    "quiet_at_its_end",
    "said",
    "told_once",
    "without_told",
]

#: around what a worker says of the error that ended a topology
BEGIN, END = "<<esault>>", "<</esault>>"
#: with this a worker of pyspark begins the traceback of what was raised while it gave its rows
_WORKER_FAILED = "PySpark worker failed with exception:"

#: where pyspark logs what it raises, with Java's stack: 10 kB in a line of JSON
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
#: where in SQL a mistake is, at the end of a line
_PLACE = re.compile(r"; line \d+ pos \d+;?$")
#: lines of a Java exception that say something; the rest are places in Spark
_LINES = 4
#: seconds until a Java that answers no more must have ended, to be told how
_PATIENCE = 10.0


class JavaDied(EsaultError):
    """The process in which Spark runs is gone; its text says how it ended."""

    wrong_use = False


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a call of Spark may raise."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError)


def gone() -> tuple[type[Exception], ...]:
    """Return the exceptions that a call of Spark raises when its Java is not there any more."""
    from py4j.protocol import Py4JError

    return (Py4JError, OSError)


def java_death(gateway: Any) -> str | None:
    """Return how the Java behind a gateway of py4j ended, for people; None while it answers."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)  # None: another has started it
    code = None if process is None else process.poll()
    if code is None:
        try:
            gateway.jvm.System.nanoTime()
            return None
        except gone():
            if process is None:
                return "Spark's Java does not answer any more"
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return f"Spark's Java (process {process.pid}) does not answer any more"
    assert process is not None
    name = f"Spark's Java (process {process.pid})"
    if code == -signal.SIGKILL:
        return f"{name} was killed (SIGKILL): by the kernel, if memory was short (`dmesg` says so), or by hand"
    if code < 0:
        return f"{name} was ended by a signal ({signal.Signals(-code).name})"
    return f"{name} has ended with exit code {code}: what it printed says why"


def is_alive(spark: Any) -> bool:
    """Return whether a session can be asked."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:  # of many kinds, by what of it is gone
        return False


def quiet_at_its_end(server: Any) -> None:
    """Keep pyspark's server of accumulators from printing a traceback when Java dies: its connection ends, and that is all."""
    tells = server.handle_error

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, OSError)):
            tells(request, address)

    server.handle_error = handle


def said(error: BaseException) -> str:
    """The message without the places in Spark's own code: its first line and the causes."""
    lines = str(error).splitlines()
    if lines and _PLACE.search(lines[0]):  # of a mistake in SQL: below are Spark's plans
        return lines[0].rstrip(";")
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
