"""A call of a hook of a sink: what goes wrong in it names the sink and the hook."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from esault.errors import EsaultError, SinkError
from esault.flow.operators.user_error import ConnectorError, described

__all__ = ["call_sink"]

T = TypeVar("T")

#: errors of the system that say enough by themselves
_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS))


def call_sink(name: str, hook: str, call: Callable[[], T]) -> T:
    """Return what the call returns. Raises SinkError, other EsaultErrors as they are, and ConnectorError for all else."""
    try:
        return call()
    except SinkError as error:
        raise SinkError(f"sink {name!r}: {error}") from error
    except EsaultError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            where = f" ({error.filename})" if error.filename else ""
            raise SinkError(
                f"sink {name!r} cannot {hook}: {error.strerror}{where}; free space or mend permissions, and run again"
            ) from error
        raise ConnectorError(f"sink {name!r}, {hook}: {described(error)}") from error
