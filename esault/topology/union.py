"""Several streams as one, without a unit in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.draft import Draft, OutletDraft
from esault.topology.error_policy import ErrorPolicy
from esault.topology.grouping import shuffle
from esault.topology.sink import Sink
from esault.topology.stream import Stream
from esault.topology.unit_options import UnitOptions

__all__ = ["Union"]


class Union(Stream[Any, Any]):
    """The tuples of several streams: steps are added to each of them, and a bolt takes all as its inputs."""

    def __init__(self, draft: Draft, parts: Sequence[Stream[Any, Any]]) -> None:
        """Not for users."""
        self._draft = draft
        self._parts = tuple(parts)
        self._beside = None

    @property
    def _outlet(self) -> OutletDraft:  # type: ignore[override]
        raise TopologyError(
            f"{self!r} is no single stream, which this takes; put a bolt behind it first, such as .bolt('all', Pass, by_key()), where "
            "Pass emits what it gets"
        )

    def __repr__(self) -> str:
        return f"<union of {', '.join(repr(part) for part in self._parts)}>"

    def _outlets(self) -> list[OutletDraft]:
        return [outlet for part in self._parts for outlet in part._outlets()]

    def _step(
        self, kind: str, function: Callable[[Any], Any], name: str | None, on_error: ErrorPolicy
    ) -> Stream[Any, Any]:
        return Union(self._draft, [part._step(kind, function, name, on_error) for part in self._parts])

    def _combined(self, combine: Any) -> Stream[Any, Any]:
        return Union(self._draft, [part._combined(combine) for part in self._parts])

    def timed(self, time: Callable[[Any], float], **said: Any) -> Stream[Any, Any]:
        """As in `Stream`, for each of the streams."""
        return Union(self._draft, [part.timed(time, **said) for part in self._parts])

    def sink(self, name: str, sink: Sink) -> None:
        """Write the tuples to `sink`, in a unit of the sink's name, which all of them go to; one sub-unit, so that each stream keeps order."""
        unit = self._draft.add_bolt(name, _Pass, self._inputs(shuffle()), UnitOptions(max_parallelism=1))
        Stream.of_unit(self._draft, unit).sink(name, sink)


class _Pass(Bolt[Any, Any, Any, Any]):
    """It emits what it gets."""

    def process(self, key: Any, value: Any) -> None:
        self.emit(key, value)
