"""Dates and times of PostgreSQL that Python has no object for, such as infinity and the years before Christ: they come as their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["reader", "register"]

#: types of which the server has values beyond those of Python
_TYPES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")


def register(psycopg: Any, adapters: Any) -> None:
    """Have these adapters give the text of such a value, where psycopg raises a DataError that names no column."""
    for name in _TYPES:
        kind = psycopg.adapters.types[name].oid
        for form in (psycopg.pq.Format.TEXT,):
            adapters.register_loader(kind, _lenient(psycopg, adapters.get_loader(kind, form)))


def reader(psycopg: Any) -> Callable[[int, bytes], Any]:
    """Return what makes a value of a type's number and its text."""

    class Context:
        """The adapters alone: there is no connection of psycopg's."""

        adapters = psycopg.adapt.AdaptersMap(psycopg.adapters)
        connection = None

    register(psycopg, Context.adapters)
    loads = psycopg.adapt.Transformer(Context)
    return lambda kind, text: loads.get_loader(kind, psycopg.pq.Format.TEXT).load(text)


def _lenient(psycopg: Any, base: Any) -> Any:
    class Lenient(psycopg.adapt.Loader):  # type: ignore[misc]
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._inner = base(oid, context)

        def load(self, data: Any) -> Any:
            try:
                return self._inner.load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return Lenient
