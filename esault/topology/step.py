"""Function steps: they run in the process of the unit before them, on whole batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from esault.topology.error_policy import ErrorPolicy, fail
from esault.topology.event_time import EventTime
from esault.value_class import value_class

__all__ = ["Step"]


@value_class(frozen=True)
class Step:
    """One function step. `kind` is "map", "filter", "flat_map", "key_by", "timed" or "combine"; the function gets the value.

    "timed" passes all on as it is: event time starts there. The function of "combine" gets a batch, its keys, values and ids, and
    gives another one.
    """

    kind: str
    function: Callable[..., Any]
    #: names the step in reports and errors, such as "lines.flat_map"
    name: str
    on_error: ErrorPolicy = field(default_factory=fail)
    #: of "timed": how watermarks are made; else None
    event_time: EventTime | None = None
