"""The text that is printed when user code raises."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol

from esault.errors import CheckpointError, EsaultError, SinkError, SourceError
from esault.payload.codec import Codec

__all__ = [
    "ConnectorError",
    "DeadLetters",
    "UserError",
    "described",
    "failure_text",
    "hook_of",
    "in_words",
    "is_transient",
    "pack_cause",
    "read_cause",
    "say_hook",
    "traceback_of",
]

#: where an exception says which hook raised it, if another one had been called
_HOOK = "__esault_hook__"
_PACKAGE = Path(__file__).parents[2]
#: rooms that call user code; connectors are as a user's own
_ENGINE = tuple(str(_PACKAGE / room) for room in ("flow", "runtime", "control", "state", "testing", "topology"))


class UserError(Exception):
    """User code raised under the policy `fail`; the text is for people and ends with the user's traceback."""


class ConnectorError(UserError):
    """Code of a sink or source raised something that is no EsaultError."""


#: errors of the system that may pass: the disk is full, rights are missing, a device fails, too much is open, a mount is away
_PASSING = frozenset(
    getattr(errno, name)
    for name in [
        "ENOSPC",
        "EDQUOT",
        "EACCES",
        "EPERM",
        "EROFS",
        "EIO",
        "EMFILE",
        "ENFILE",
        "ENOMEM",
        "EAGAIN",
        "ESTALE",
        "EBUSY",
        "ENETDOWN",
        "ENETUNREACH",
        "EHOSTDOWN",
        "EHOSTUNREACH",
    ]
    if hasattr(errno, name)
)


#: ... of those, what a process is short of
_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


def is_transient(error: BaseException | None) -> bool:
    """Return whether an error came from a sink, a source or the state and is of a kind that passes: the same may work later.

    So is what the engine itself could not do for want of descriptors or memory: another process may have them.
    """
    if isinstance(error, OSError) and error.errno in _SHORTAGES:
        return True
    if not isinstance(error, (SinkError, SourceError, CheckpointError, ConnectorError)):
        return False
    return any(
        isinstance(each, (ConnectionError, TimeoutError)) or (isinstance(each, OSError) and each.errno in _PASSING)
        for each in _with_causes(error)
    )


class DeadLetters(Protocol):
    """The place for dead letters; durable after `sync`. As a text it says where that is."""

    def put(self, record: dict[str, Any]) -> None:
        """Keep one record of plain values."""
        ...

    def sync(self) -> None:
        """Make all that was put durable."""
        ...


def say_hook(error: BaseException, hook: str) -> None:
    """Note in an error which hook of the user's raised: objects are made and opened in the midst of other calls."""
    vars(error).setdefault(_HOOK, hook)


def hook_of(error: BaseException, called: str) -> str:
    """The hook of the user's that raised, `called` where none was noted."""
    hook: str = vars(error).get(_HOOK, called)
    return hook


def traceback_of(error: BaseException) -> str:
    """The traceback as the user would see it in a plain script: without the engine's own first frames, and without its
    last ones where it refused something, such as an emit."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and _is_engine(tb.tb_frame):
        tb = tb.tb_next
    if tb is None:  # there is nothing of the user's in it: its words must do
        return "".join(traceback.format_exception_only(type(error), error)).rstrip()
    frames = [frame for frame, _ in traceback.walk_tb(tb)]
    if isinstance(error, EsaultError) and error.__cause__ is None:
        while frames and _is_engine(frames[-1]):
            frames.pop()
    return "".join(traceback.format_exception(type(error), error, tb, limit=len(frames))).rstrip()


def _is_engine(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_ENGINE)


def _came_from_code(error: EsaultError) -> bool:
    """Return whether user code raised; what the system refused, such as a full disk, is said by the error's own words."""
    cause = next((each for each in _with_causes(error) if not isinstance(each, EsaultError)), None)
    return cause is not None and not isinstance(cause, OSError)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that and so on, each once: users may write `raise error from error`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def described(error: BaseException) -> str:
    """The type and text of an error of the user's code, and its traceback."""
    return f"{in_words(error)}\n{traceback_of(error)}"


def in_words(error: BaseException) -> str:
    """The type and text of an error; of one whose `__str__` raises, what Python's tracebacks say in its place."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}: <exception str() failed>"


def failure_text(unit: str, error: Exception) -> str:
    """Return the cause of the topology's end, for people, with the traceback where the error's own words do not tell where it came from."""
    if isinstance(error, UserError) or (isinstance(error, EsaultError) and not _came_from_code(error)):
        return str(error)
    if isinstance(error, EsaultError):
        return f"{error}\n{traceback_of(error)}"
    what = str(error) if isinstance(error, OSError) else in_words(error)
    return f"unit {unit!r}: {what}\n{traceback_of(error)}"


def pack_cause(error: BaseException) -> bytes:
    """Return the exception of the user's code behind an error as bytes; none where there is none, or it cannot travel."""
    cause = error.__cause__ if isinstance(error, UserError) else error
    if cause is None:
        return b""
    try:
        return Codec().pack_value(cause)
    except Exception:  # what the user's exception holds may raise anything
        return b""


def read_cause(data: bytes) -> BaseException | None:
    """Return the exception that `pack_cause` packed; None where there is none, or it cannot be read here."""
    if not data:
        return None
    try:
        cause = Codec().unpack(data)
    except Exception:
        return None
    return cause if isinstance(cause, BaseException) else None
