"""The engines of bench throughput: the command of each, the rows it puts out, and the place where user code runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["BYTEWAX", "ENGINES", "GROUPS", "NO_ACKS", "OURS", "TABLE", "VECTORISED", "Engine", "chosen"]

OURS, NO_ACKS, TABLE, VECTORISED = "esault", "esault, acks off", "esault, SparkTable", "esault, columns"
BYTEWAX = ("bytewax, 1 worker", "bytewax, 2 processes")

#: what --peers may name; all but the first are heavy, with an environment of their own (bench/peers/environments.py)
GROUPS = ("bytewax", "pathway", "flink", "spark")


@dataclass(frozen=True)
class Engine:
    """A row of the result."""

    name: str
    module: str
    #: behind workload, load and passes
    arguments: tuple[str, ...]
    #: R: one update per record; M: one per key per micro-batch
    semantics: str
    #: where the code per tuple runs: "Python", "Python, batches" or "none" (the engine's own operators)
    user_code: str
    #: of GROUPS; None for eSault
    group: str | None = None
    #: how much of the load it gets, as a multiple: what compiles while it runs needs more of it, what is slow less
    times: float = 1.0

    @property
    def kind(self) -> str:
        """For colours: ours, peers with Python in the loop, peers without."""
        if self.group is None:
            return "esault"
        return "peer, no Python in the loop" if self.user_code == "none" else "peer, user code in Python"

    def facts(self) -> dict[str, Any]:
        """As they stand in a result."""
        return {"semantics": self.semantics, "user_code": self.user_code}


def _peer(name: str, flow: str, arguments: str, semantics: str, user_code: str, times: float = 1.0) -> Engine:
    group = flow.partition("_")[0]
    return Engine(name, f"bench.peers.{flow}", tuple(arguments.split()), semantics, user_code, group, times)


_OURS = "bench.kit.esault_run"
ENGINES = (
    Engine(OURS, _OURS, (), "R", "Python"),
    _peer(BYTEWAX[0], "bytewax_flows", "--processes 1", "R", "Python"),
    Engine(NO_ACKS, _OURS, ("--set", "delivery=none"), "R", "Python"),
    _peer(BYTEWAX[1], "bytewax_flows", "--processes 2", "R", "Python"),
    Engine(VECTORISED, _OURS, (), "M", "Python, batches"),
    _peer("pathway, 1 thread", "pathway_flows", "--threads 1", "M", "Python"),
    _peer("pathway, 2 threads", "pathway_flows", "--threads 2", "M", "Python"),
    _peer("pyflink datastream", "flink_flows", "--how datastream", "R", "Python", 1 / 30),
    _peer("flink sql", "flink_flows", "--how sql", "R", "none", 5.0),
    _peer("flink sql, mini-batch p=2", "flink_flows", "--how mini-batch --parallelism 2", "M", "none", 5.0),
    _peer("spark, python split", "spark_flows", "--how python", "M", "Python", 5.0),
    _peer("spark", "spark_flows", "--how native", "M", "none", 10.0),
)


def chosen(text: str) -> tuple[str, ...]:
    """The groups that `--peers` names: "all", "none" or a list with commas. Raises ValueError."""
    if text in ("all", "none"):
        return GROUPS if text == "all" else ()
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        raise ValueError(f"there is no peer {unknown[0]!r}; write all, none, or names of: {', '.join(GROUPS)}")
    return tuple(group for group in GROUPS if group in names)
