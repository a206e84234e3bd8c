"""What sinks hold at the end, in a form that is compared: by sink, how often each row is there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from esault.sinks import JsonLines
from esault.sinks.landing import parts
from esault.testing import LocalRuntime
from esault.topology.plan import Plan

__all__ = ["Tables", "final", "landed", "wanted"]

Tables = dict[str, Counter[str]]


def landed(plan: Plan) -> Tables:
    """What the sinks of a plan have put where they land."""
    return {s.name: Counter(_rows(s.sink)) for s in plan.sinks}


def wanted(local: LocalRuntime) -> Tables:
    """What they got in a run of the plain cores, to its end."""
    local.run_until_drained()
    return {s.name: Counter(json.dumps([row[0], row[1]]) for row in local.landed(s.name)) for s in local.plan.sinks}


def _rows(sink: Any) -> list[str]:
    if isinstance(sink, JsonLines):
        lines = [json.loads(line) for line in Path(sink.path).read_text().splitlines()]
        return [json.dumps([line["key"], line["value"]]) for line in lines]
    import pyarrow.parquet as pq

    names = [column.name for column in sink.schema if not column.name.startswith("_")]
    rows = [row for part in parts(sink.path) for row in pq.read_table(part, columns=names).to_pylist()]
    return [json.dumps([row[names[0]], _value([row[name] for name in names[1:]])]) for row in rows]


def _value(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _last_mean(tables: Tables) -> None:
    best = _greatest(tables.pop("roads"))
    tables["roads"] = {road: (fixes, pytest.approx(mean)) for road, (fixes, mean) in best.items()}  # type: ignore[assignment]


def _last_revenue(tables: Tables) -> None:
    tables["orders"] = _greatest(tables.pop("orders"))  # type: ignore[assignment]


def _last_total(tables: Tables) -> None:
    tables["table"] = _greatest(tables.pop("table"))  # type: ignore[assignment]


def _greatest(rows: Counter[str]) -> dict[Any, Any]:
    """Of each key the row with the greatest value."""
    best: dict[Any, Any] = {}
    for key, value in map(json.loads, rows):
        best[key] = max(best.get(key, value), value)
    return best


#: where a row is a running total of several senders' rows: which ones stand between depends on who came first, the last one does not
_FINAL: Mapping[str, Callable[[Tables], None]] = {
    "traffic": _last_mean,
    "tpch_q3": _last_revenue,
    "word_count": _last_total,
    "standard_library": _last_total,
}


def final(name: str, tables: Tables) -> Tables:
    """Of the tables of a topology what no order of different senders' rows changes."""
    if name in _FINAL:
        _FINAL[name](tables)
    return tables
