"""Stand-ins for channels and sink writers behind a unit in a process of Spark's, where no task of a later level is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.flow.channel.lineage import Lineage
from esault.spark.engine.frames import Port

if TYPE_CHECKING:
    from esault.spark.engine.runner import Runner
    from esault.spark.engine.runners import Runners

__all__ = ["Inlined", "Passing", "Written"]


class Inlined:
    """A channel to a unit in the same process."""

    queue: Sequence[Any] = ()

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def add(self, lineage: Lineage, input: int, keys: Any, values: Any, ids: Sequence[str] | None, now: float) -> None:
        self._runner.run(input, lineage.due, now, keys, values, ids)

    def add_whole(
        self, lineage: Lineage, input: int, rows: int, keys: Any, values: Any, ids: Sequence[str] | None, now: float
    ) -> None:
        codec = self._runner.codec
        keys, values = codec.unpack(codec.pack((keys, values)))
        self._runner.run(input, lineage.due, now, keys, values, ids)


class Passing:
    """A sink writer: its rows go to where sinks are, without leaving the partition if Spark lets them."""

    def __init__(self, runners: Runners, unit: str, sink: str) -> None:
        self._runners = runners
        self._unit = unit
        self._sink = sink
        self._ports: dict[int, Port] = {}
        self.takes_arrays = next(s.sink.takes_arrays for s in runners.plan.sinks if s.name == sink)

    def write(self, lineage: Lineage, keys: Any, values: Any, ids: Sequence[str] | None, now: float) -> None:
        passing = self._runners.job.layout.passing
        place = self._runners.partition % len(passing)
        port = self._ports.get(place)
        if port is None:
            port = self._ports[place] = self._runners.outbox.port(self._unit, passing[place], self._sink)
        port.write(lineage, keys, values, ids, now)


class Written:
    """A sink writer: its rows are written here, in the process that they come from."""

    def __init__(self, runners: Runners, sink: str, takes_arrays: bool) -> None:
        self._runners = runners
        self._sink = sink
        self.takes_arrays = takes_arrays

    def write(self, lineage: Lineage, keys: Any, values: Any, ids: Sequence[str] | None, now: float) -> None:
        landing = self._runners.landing
        assert landing is not None
        landing.write(self._sink, ((0, lineage.due, keys, values, ids),))
