"""Calls of the hooks of a sink: what goes wrong names the sink and the hook, and what is not done at once is told apart."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from esault.errors import EsaultError, SinkError
from esault.flow.operators.user_error import ConnectorError, described

__all__ = ["Background", "call_sink", "future_of", "waited"]

T = TypeVar("T")

#: errors of the system that say enough by themselves
_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS))


class Background(Protocol):
    """Runs the coroutines of sinks, outside of the data loop."""

    def submit(self, awaitable: Awaitable[Any]) -> Future[Any]:
        """Begin, and return what will be done with it."""
        ...


def future_of(result: Any, background: Background | None) -> Future[Any] | None:
    """Return the future that a hook returned, or that of its coroutine; None where it is done."""
    if isinstance(result, Future):
        return result
    if not hasattr(type(result), "__await__"):
        return None
    if background is None:
        raise EsaultError("the hook is async, and there is no event loop for it here")
    return background.submit(result)


def waited(result: Any, background: Background | None) -> Any:
    """Return what a hook returned, or wait for what it comes to."""
    future = None if result is None else future_of(result, background)
    return result if future is None else future.result()


def call_sink(name: str, hook: str, call: Callable[[], T]) -> T:
    """Return what the call returns. Raises SinkError, other EsaultErrors as they are, and ConnectorError for all else."""
    try:
        return call()
    except SinkError as error:
        raise SinkError(f"sink {name!r}: {error}") from error
    except EsaultError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            where = f" ({error.filename})" if error.filename else ""
            raise SinkError(
                f"sink {name!r} cannot {hook}: {error.strerror}{where}; free space or mend permissions, and run again"
            ) from error
        raise ConnectorError(f"sink {name!r}, {hook}: {described(error)}") from error
