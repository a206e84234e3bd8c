"""`Topology`: where a graph of spouts and bolts is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.draft import Draft, OutletDraft
from esault.topology.error_policy import ErrorPolicy
from esault.topology.event_time import Idle, checked_event_time
from esault.topology.grouping import Grouping, by_key
from esault.topology.join import check_keep, check_kind
from esault.topology.joinable import join_in_windows
from esault.topology.known_names import named_keywords
from esault.topology.plan import Plan
from esault.topology.spout import Spout
from esault.topology.stream import Stream
from esault.topology.unit_options import FAIL, UnitOptions, WindowOptions
from esault.topology.window import WindowKind

__all__ = ["Topology", "plan_maker"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")


class Topology:
    """A graph of spouts and bolts, written down call by call; nothing runs.

    A mistake raises TopologyError in the call that makes it; what concerns the whole is said by `plan`.
    """

    def __init__(
        self,
        name: str,
        replay_after: float = 300,
        *,
        types: Sequence[type | str] = (),
        moved: Mapping[str, type | str] | None = None,
    ) -> None:
        """`replay_after`: seconds without any progress after which open roots are replayed.

        `types`: classes, and names of packages, that eSault does not know and whose objects may be in values and state; those of
        your own modules may be anyway. `moved`: old name -> what it is now, for `--resume` after a change of code:
        `{"old-topology": "new-topology", "old_unit": "new_unit", "old_module.OldClass": NewClass}`.
        """
        self._draft = Draft(name, replay_after, types, moved)

    def __repr__(self) -> str:
        return f"<Topology {self.name!r}: {', '.join(self._draft.units) or 'empty'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return pictures for notebooks: a flowchart where they draw Mermaid, a tree elsewhere."""
        from esault.topology.drawing import draw, mermaid

        try:
            plan = self.plan()
        except TopologyError as error:
            return {"text/plain": f"{self!r}: {error}"}
        return {"text/plain": draw(plan), "text/markdown": f"```mermaid\n{mermaid(plan)}```"}

    @property
    def name(self) -> str:
        """Return the name that runs, state and reports are called by."""
        return self._draft.name

    @property
    def replay_after(self) -> float:
        """Seconds without any progress after which open roots are replayed."""
        return self._draft.replay_after

    @named_keywords
    def spout(
        self,
        name: str,
        spout: Spout[K, V],
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        time: Callable[[V], float] | None = None,
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        after: Stream[Any, Any] | Sequence[Stream[Any, Any]] = (),
    ) -> Stream[K, V]:
        """Read tuples from `spout`, an object; the stream of them.

        More than one sub-unit takes a class that says `parallel = True`. With `time` event time starts here, and each sub-unit has
        a watermark of its own; `lateness`, `idle` and `ahead` as in `Stream.timed`. `after`: streams that are to be there first, such as a
        table to join with: nothing is read before their spouts have ended, or caught up where they have no end, and what they gave is
        processed. The rest as in `Stream.bolt`.
        """
        where = f"unit {name!r}"
        if time is not None:
            checked_event_time(where, time, lateness, idle, ahead)
        elif (lateness, idle, ahead) != (None, None, None):
            raise TopologyError(
                f"{where}: lateness, idle and ahead go with time=; write time=lambda value: value['at']"
            )
        before = [outlet for stream in self._awaited(where, after) for outlet in stream._outlets()]
        unit = self._draft.add_spout(name, spout, UnitOptions.of_call(locals()), before)
        if time is None:
            return Stream.of_unit(self._draft, unit)
        return Stream(self._draft, self._draft.add_timed(unit.streams[""], time, lateness, idle, ahead, where), {})

    @named_keywords
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
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        tick_every: float | None = None,
        replicas: int = 1,
        concurrency: int | None = None,
        buffer: int | None = None,
        overflow: str | None = None,
        chain: bool = True,
        keys_in_memory: int | None = None,
    ) -> Stream[KO, VO]:
        """A bolt where several streams meet: `inputs` gives each one its grouping. The rest as in `Stream.bolt`.

        The groupings must agree in what one object stands for.
        """
        options = UnitOptions.of_call(locals())
        return Stream.of_unit(self._draft, self._draft.add_bolt(name, factory, self._outlets(name, inputs), options))

    @named_keywords
    def window(
        self,
        name: str,
        factory: Callable[[], Bolt[Any, Any, KO, VO]],
        window: WindowKind,
        inputs: Mapping[Stream[Any, Any], Grouping],
        *,
        time: Callable[[Any], float] | Mapping[Stream[Any, Any], Callable[[Any], float]] | None = None,
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        by: str = "event",
        updates: str = "drop",
        allowed_lateness: float = 0,
        early_count: int | None = None,
        early_seconds: float | None = None,
        last_pane: bool = False,
        ordered: bool = False,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        streams: Sequence[str] = (),
        on_error: ErrorPolicy = FAIL,
        tick_every: float | None = None,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[KO, VO]:
        """A window over several streams, for a bolt with `process_stream`; `inputs` as in `bolt`, the rest as in `Stream.window`.

        `time` is one function for all inputs, or maps streams to functions.
        """
        outlets = self._outlets(name, inputs)
        times = self._times(name, list(inputs), time)
        options, windowed = UnitOptions.of_call(locals()), WindowOptions.of_call(locals(), times=times)
        return Stream.of_unit(self._draft, self._draft.add_bolt(name, factory, outlets, options, windowed))

    def join(
        self,
        name: str,
        sides: Sequence[Stream[K, Any]],
        window: WindowKind,
        *,
        time: Callable[[Any], float] | Mapping[Stream[Any, Any], Callable[[Any], float]] | None = None,
        kind: str = "inner",
        keep: str = "all",
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[K, tuple[Any, ...]]:
        """Join two or more streams by key and window: values are tuples with one of each stream, in the order of `sides`.

        Args:
            time: one function for all, or maps streams to functions.
            kind: "inner": one of each; when the window closes "outer" also emits what there is with None for streams that had nothing,
                "left" the same where the first stream had something, "right" where the last one had.
            keep: "all": each combination, as soon as it is there; "first", "last": of each stream the earliest or latest tuple alone, when
                the window closes.

        The rest as in `Stream.window`.
        """
        where = f"unit {name!r}"
        if not isinstance(sides, Sequence) or len(sides) < 2:
            raise TopologyError(f"{where}: a join takes a list of two or more streams, not {sides!r}")
        if any(sides[i] is other for i in range(len(sides)) for other in sides[:i]):
            raise TopologyError(f"{where}: a stream is given twice; each stream is one side of the join")
        self._outlets(name, dict.fromkeys(sides, by_key()))
        outlets = [(side._outlet, by_key()) for side in sides]  # a side is one stream, and no union
        windowed = WindowOptions(window, self._times(name, sides, time), lateness, idle, ahead)
        names = tuple(f"{i}" for i in range(len(sides)))
        options = UnitOptions.of_call(locals())
        checked = check_kind(where, kind), check_keep(where, keep)
        return join_in_windows(self._draft, name, outlets, windowed, options, *checked, names)

    def plan(self, replicas: bool = True) -> Plan:
        """The whole topology, validated and frozen, as the engines run it; without `replicas` as one that has none of its own does."""
        return self._draft.plan(replicas)

    @staticmethod
    def _times(name: str, streams: Sequence[Stream[Any, Any]], time: Any) -> list[Any]:
        if not isinstance(time, Mapping):
            return [time for stream in streams for _ in stream._inputs(None)]
        for stream in time:
            if stream not in streams:
                raise TopologyError(f"unit {name!r}: time names {stream!r}, which is not among inputs; name those")
        return [time.get(stream) for stream in streams for _ in stream._inputs(None)]

    def _awaited(self, where: str, after: Any) -> Sequence[Stream[Any, Any]]:
        """Return the streams that a spout waits for. Raises TopologyError."""
        streams = (after,) if isinstance(after, Stream) else tuple(after) if isinstance(after, (list, tuple)) else None
        for stream in (after,) if streams is None else streams:
            if not isinstance(stream, Stream) or stream._draft is not self._draft:
                raise TopologyError(
                    f"{where}: after is a stream of topology {self.name!r} that is there before, or a list of them, not {stream!r} "
                    f"({type(stream).__name__}); write customers = t.spout('customers', ...), and then after=customers"
                )
        return streams or ()

    def _outlets(self, name: str, inputs: Mapping[Stream[Any, Any], Grouping]) -> list[tuple[OutletDraft, Grouping]]:
        where, remedy = f"unit {name!r}", "write inputs={stream: by_key(), other: by_key()}"
        if not isinstance(inputs, Mapping):
            raise TopologyError(f"{where}: inputs maps streams to groupings, and this is {inputs!r}; {remedy}")
        if not inputs:
            raise TopologyError(f"{where}: inputs is empty; {remedy}")
        outlets: list[tuple[OutletDraft, Grouping]] = []
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
            outlets += stream._inputs(grouping)
        return outlets


def plan_maker(topology: Topology | Plan | Callable[[], Topology | Plan]) -> Callable[[], Plan]:
    """Return what gives the plan anew, for each process as for the first; one that was made before is the same each time."""
    if callable(topology):
        make = topology

        def again() -> Plan:
            made = make()
            return made.plan() if isinstance(made, Topology) else made

        return again
    plan = topology.plan() if isinstance(topology, Topology) else topology
    return lambda: plan
