"""The user code of bench/peers/flink_flows.py's DataStream job, which Flink's Python threads import."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

__all__ = ["Running", "split"]


def split(line: str) -> Iterator[tuple[str, int]]:
    """A sentence's words."""
    for word in line.split():
        yield word, 1


class Running(KeyedProcessFunction):
    """One update a row, as Count in bench/workloads/topologies.py; says in `path` how many, and when the first and the last came."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows, self.first, self.last = 0, 0.0, 0.0

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, int]]:
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        self.last = time.time()
        if not self.rows:
            self.first = self.last
        self.rows += 1
        yield value[0], total

    def close(self) -> None:
        with open(self.path, "a") as out:
            out.write(json.dumps({"rows": self.rows, "first": self.first, "last": self.last}) + "\n")
