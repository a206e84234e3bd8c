"""Resources: ways to something outside, such as a connection or a lock, which hold no data of a key."""

from __future__ import annotations

import io
from typing import Any

from esault.payload.class_names import is_own

__all__ = ["is_resource"]

#: modules all of whose objects are: threads wait at them, or write to them; a mock stands for a client
_MODULES = frozenset(("_thread", "threading", "logging", "logging.handlers", "asyncio.locks", "unittest.mock"))
#: packages whose objects write to logs
_LOGGERS = frozenset(("loguru", "structlog"))
#: modules whose objects hold what was put into them, although they can be closed
_HOLDERS = frozenset(("_queue", "queue", "asyncio.queues", "multiprocessing.queues", "mmap", "shelve", "dbm"))
#: packages whose objects hold data, such as an image, although they can be closed
_DATA = frozenset(("PIL", "xarray"))
#: a class that has one of these lets go of something
_ENDS = ("close", "aclose", "disconnect", "dispose", "shutdown", "__exit__", "__aexit__")
#: those of the engine's own
_OWN = frozenset((("esault.topology.context", "Context"),))
#: by class
_known: dict[type, bool] = {}
_MOST_KNOWN = 1024


def is_resource(value: Any) -> bool:
    """Return whether a value is a resource: of a library's class that can be closed, a lock, a logger, the context.

    Iterators and queues are none: what is in them would be lost. Nor are objects of the user's own classes, which may hold anything.
    """
    kind = type(value)
    known = _known.get(kind)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[kind] = _judge(kind)
    return known


def _judge(kind: type) -> bool:
    module = str(kind.__module__)
    if module in _MODULES or module.partition(".")[0] in _LOGGERS or (module, kind.__name__) in _OWN:
        return True
    if (
        module in _HOLDERS
        or module.partition(".")[0] in _DATA
        or kind is memoryview
        or issubclass(kind, type)
        or is_own(module)
    ):
        return False
    if hasattr(kind, "__next__") and not issubclass(kind, io.IOBase):
        return False
    return any(hasattr(kind, name) for name in _ENDS)
