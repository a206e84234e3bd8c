"""The number of calls of `async def process` that a sub-unit has open."""

from __future__ import annotations

from esault.errors import TopologyError
from esault.topology.examine import is_asynchronous
from esault.topology.factory import class_behind
from esault.topology.plan import UnitPlan

__all__ = ["DEFAULT", "MOST", "check_concurrency"]

#: of a bolt with `async def process` that does not say
DEFAULT = 64
#: calls at once that one process can take on: each is a task and, often, a socket
MOST = 10_000


def check_concurrency(unit: UnitPlan, concurrency: object) -> int | None:
    """`concurrency`, or the default where `process` is async; None where it is not. Raises TopologyError."""
    where = f"unit {unit.name!r}"
    assert unit.factory is not None
    cls = class_behind(unit.factory) or type(unit.factory())
    if not is_asynchronous(cls):
        if concurrency is not None:
            hook = "process_batch" if unit.batch else "process"
            raise TopologyError(
                f"{where}: concurrency={concurrency!r} is for `async def process`, and {cls.__name__}.{hook} does not wait for "
                "anything; leave it out, or write `async def process(self, key, value)` in a Bolt"
            )
        return None
    if concurrency is None:
        return DEFAULT
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= MOST:
        raise TopologyError(f"{where}: concurrency={concurrency!r} must be a whole number of calls from 1 to {MOST}")
    return concurrency
