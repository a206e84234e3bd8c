"""`UnitOptions`: the keywords that `bolt`, `window`, `join` and their like have in common, as one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from esault.topology.arguments import check_buffer, check_on_error, check_seconds, check_streams, check_whole
from esault.topology.error_policy import ErrorPolicy, fail
from esault.topology.event_time import Idle
from esault.topology.parallelism import Parallelism
from esault.value_class import value_class

__all__ = ["FAIL", "UnitOptions", "WindowOptions"]

#: the error policy of what says none
FAIL = fail()

Options = TypeVar("Options", "UnitOptions", "WindowOptions")


@value_class(frozen=True)
class UnitOptions:
    """Options of a unit besides its inputs, as they were given. `Stream.bolt` tells users what each means.

    The public methods name these keywords with their types and defaults, so that editors and type checkers see them; a
    test holds the two together. A new option is a field here, a keyword there and a line in `checked`.
    """

    parallelism: int = 1
    min_parallelism: int = 1
    max_parallelism: int | None = None
    streams: Sequence[str] = ()
    on_error: ErrorPolicy = FAIL
    idle_after: float | None = None
    expire_after: float | None = None
    expire_by: str = "processing"
    tick_every: float | None = None
    replicas: int = 1
    concurrency: int | None = None
    buffer: int | None = None
    overflow: str | None = None
    chain: bool = True
    keys_in_memory: int | None = None

    @classmethod
    def of_call(cls, keywords: Mapping[str, Any], **fixed: Any) -> UnitOptions:
        """Return the options among the `locals()` of a public method; `fixed` are those that the method itself chooses."""
        return _of_call(cls, keywords, fixed)

    @property
    def width(self) -> Parallelism:
        """Return how many sub-units there are at the start, at least and at most."""
        return Parallelism(self.parallelism, self.min_parallelism, self.max_parallelism)

    def checked(self, name: str) -> UnitOptions:
        """Return the options of unit `name` in their own types. Raises TopologyError.

        `concurrency` and `replicas` depend on the rest of the unit: see `check_concurrency` and `check_replicas`.
        """
        where = f"unit {name!r}"
        self.width.check(name)
        seconds: dict[str, Any] = {
            argument: None if value is None else check_seconds(where, argument, value)
            for argument in ("idle_after", "expire_after", "tick_every")
            for value in (getattr(self, argument),)
        }
        return dataclasses.replace(
            self,
            streams=check_streams(name, self.streams),
            on_error=check_on_error(where, self.on_error),
            buffer=check_buffer(where, self.buffer, self.overflow),
            keys_in_memory=check_whole(where, "keys_in_memory", self.keys_in_memory, "keys"),
            **seconds,
        )


@value_class(frozen=True)
class WindowOptions:
    """Options of a window besides those of any unit, as they were given. `Stream.window` tells users what each means."""

    window: Any
    #: one for all inputs, or as many as there are inputs; None where it is known
    times: Sequence[Any]
    lateness: float | None = None
    idle: float | Idle | None = None
    ahead: float | None = None
    by: str = "event"
    updates: str = "drop"
    allowed_lateness: float = 0
    early_count: int | None = None
    early_seconds: float | None = None
    last_pane: bool = False
    ordered: bool = False
    split_hot_keys: bool = False

    @classmethod
    def of_call(cls, keywords: Mapping[str, Any], times: Sequence[Any]) -> WindowOptions:
        """Return the options among the `locals()` of a public method."""
        return _of_call(cls, keywords, {"times": times})


def _of_call(cls: type[Options], keywords: Mapping[str, Any], fixed: Mapping[str, Any]) -> Options:
    given = {f.name: keywords[f.name] for f in fields(cls) if f.name in keywords}
    return cls(**{**given, **fixed})
