"""`Topology`: where a graph of spouts and bolts is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.draft import BoltOptions, Draft, OutletDraft
from esault.topology.error_policy import ErrorPolicy, fail
from esault.topology.grouping import Grouping
from esault.topology.parallelism import Parallelism
from esault.topology.plan import Plan
from esault.topology.spout import Spout
from esault.topology.stream import Stream

__all__ = ["Topology"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")

_FAIL = fail()


class Topology:
    """A graph of spouts and bolts, written down call by call; nothing runs.

    A mistake raises TopologyError in the call that makes it; what concerns the whole is said by `plan`.
    """

    def __init__(self, name: str, replay_after: float = 300) -> None:
        """`replay_after`: seconds without any progress after which open roots are replayed."""
        self._draft = Draft(name, replay_after)

    def __repr__(self) -> str:
        return f"<Topology {self.name!r}: {', '.join(self._draft.units) or 'empty'}>"

    @property
    def name(self) -> str:
        """What runs, state and reports are called by."""
        return self._draft.name

    @property
    def replay_after(self) -> float:
        """Seconds without any progress after which open roots are replayed."""
        return self._draft.replay_after

    def spout(
        self,
        name: str,
        spout: Spout[K, V],
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
    ) -> Stream[K, V]:
        """Read tuples from `spout`, an object; the stream of them.

        More than one sub-unit takes a class that says `parallel = True`. The rest as in `Stream.bolt`.
        """
        unit = self._draft.add_spout(name, spout, Parallelism(parallelism, min_parallelism, max_parallelism))
        return Stream.of_unit(self._draft, unit)

    def bolt(
        self,
        name: str,
        factory: Callable[[], Bolt[Any, Any, KO, VO] | BatchBolt[Any, Any, KO, VO]],
        inputs: Mapping[Stream[Any, Any], Grouping],
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        streams: Sequence[str] = (),
        on_error: ErrorPolicy = _FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        tick_every: float | None = None,
        concurrency: int | None = None,
    ) -> Stream[KO, VO]:
        """A bolt where several streams meet: `inputs` gives each one its grouping. The rest as in `Stream.bolt`.

        The groupings must agree in what one object stands for.
        """
        options = BoltOptions(
            Parallelism(parallelism, min_parallelism, max_parallelism),
            streams,
            on_error,
            idle_after,
            expire_after,
            tick_every,
            concurrency,
        )
        return Stream.of_unit(self._draft, self._draft.add_bolt(name, factory, self._outlets(name, inputs), options))

    def plan(self) -> Plan:
        """The whole topology, validated and frozen, as the engines run it."""
        return self._draft.plan()

    def _outlets(self, name: str, inputs: Mapping[Stream[Any, Any], Grouping]) -> list[tuple[OutletDraft, Grouping]]:
        where, remedy = f"unit {name!r}", "write inputs={stream: by_key(), other: by_key()}"
        if not isinstance(inputs, Mapping):
            raise TopologyError(f"{where}: inputs maps streams to groupings, and this is {inputs!r}; {remedy}")
        if not inputs:
            raise TopologyError(f"{where}: inputs is empty; {remedy}")
        outlets = []
        for stream, grouping in inputs.items():
            if not isinstance(stream, Stream):
                raise TopologyError(
                    f"{where}: {stream!r} ({type(stream).__name__}) in inputs is no stream; take what "
                    f"t.spout(...) or .bolt(...) returned: {remedy}"
                )
            if stream._draft is not self._draft:
                raise TopologyError(
                    f"{where}: {stream!r} is not of topology {self.name!r}; a bolt takes streams of its own topology"
                )
            outlets.append((stream._outlet, grouping))
        return outlets
