"""Functions that give a field of a value, and are known by its name: what they give of many values is a column."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

__all__ = ["column_of", "field_name"]


def field_name(function: Callable[[Any], Any]) -> str | None:
    """Return the name of the field that the function gives, as `operator.itemgetter("name")` does; None where that is not known."""
    if type(function) is not itemgetter:
        return None
    names = function.__reduce__()[1]
    return names[0] if len(names) == 1 and type(names[0]) is str else None


def column_of(name: str | None, values: Any) -> Any:
    """Return the column of this name, where values are a RecordBatch of Arrow's that has one; else None."""
    if name is None or not hasattr(values, "schema"):
        return None
    place = values.schema.get_field_index(name)  # below 0 also where there are two
    return values.column(place) if place >= 0 else None
