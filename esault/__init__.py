"""eSault: an elastic stream engine whose units grow and shrink while tuples keep flowing.

The rooms: `topology` is what a user writes, `sources` and `sinks` what comes in the box for it; `flow` is the data
path and `control` the control path, which meet in `messages` alone; `runtime` and `cluster` run them on actors,
`testing` in one process, `spark` on Spark, `sim` in a model; `cli` and `ui` are the command line and what it shows.
Importing this package loads `topology` and nothing heavier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from esault.errors import (
    CheckpointError,
    EsaultError,
    FencedError,
    FrameError,
    LocateError,
    PayloadError,
    PolicyTimeout,
    SinkError,
    SourceError,
    StateError,
    TopologyError,
    TopologyFailed,
    UsageError,
)
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.builder import Topology
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.error_policy import Backoff, ErrorPolicy, backoff, dead_letter, fail, skip
from esault.topology.grouping import Grouping, broadcast, by_key, partial_key, shuffle, single
from esault.topology.sink import Row, Sink
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream, Spout
from esault.topology.stream import Stream
from esault.topology.ttl import ttl

if TYPE_CHECKING:
    from esault.api.run import run
    from esault.api.run_handle import RunHandle, start
    from esault.sinks.results import read

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "BatchBolt",
    "Bolt",
    "CheckpointError",
    "Columns",
    "Context",
    "EndOfStream",
    "ErrorPolicy",
    "EsaultError",
    "FencedError",
    "FrameError",
    "Grouping",
    "LocateError",
    "PayloadError",
    "PolicyTimeout",
    "Row",
    "RunHandle",
    "Sink",
    "SinkError",
    "SourceError",
    "SplitReader",
    "SplitSource",
    "Spout",
    "StateError",
    "Stream",
    "Topology",
    "TopologyError",
    "TopologyFailed",
    "UsageError",
    "__version__",
    "backoff",
    "broadcast",
    "by_key",
    "dead_letter",
    "fail",
    "partial_key",
    "read",
    "run",
    "shuffle",
    "single",
    "skip",
    "start",
    "ttl",
]


def __getattr__(name: str) -> Any:
    # The runtime brings actors and sockets: it is loaded by those who run something.
    if name == "run":
        from esault.api.run import run

        return run
    if name in ("start", "RunHandle"):
        from esault.api.run_handle import RunHandle, start

        return {"start": start, "RunHandle": RunHandle}[name]
    if name == "read":
        from esault.sinks.results import read

        return read
    from importlib import import_module

    raise import_module("esault.late_names").no_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
