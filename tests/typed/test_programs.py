"""Whole programs whose values are dataclasses, pydantic models and TypedDicts, as their users would write them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import esault_command
import pytest

from esault.sinks.landing import parts
from esault.testing import LocalRuntime
from tests.typed import events, orders, sold

HERE = Path(__file__).parent
LINES = [
    {"id": str(UUID(int=1)), "shop": "north", "amount": "1.50", "at": "2026-01-02T03:04:05+00:00"},
    {"id": str(UUID(int=2)), "shop": "south", "amount": "2.50", "at": "2026-01-02T03:04:06+00:00"},
    {"id": str(UUID(int=3)), "shop": "north", "amount": "0.50", "at": "2026-01-02T03:04:07+00:00"},
]
PLACE = {"city": "Turin", "position": [45.0, 7.5]}
CLICK = {"id": str(UUID(int=1)), "kind": "click", "at": "2026-01-02T03:04:05+00:00", "seconds": 1.5}
EVENTS = [
    {**CLICK, "tags": ["b", "a"], "place": PLACE},
    {**CLICK, "kind": "view"},
    {**CLICK, "seconds": -1},
    {**CLICK, "id": str(UUID(int=2))},
]


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("orders", LINES), ("events", EVENTS)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / f"{name}.py").write_text((HERE / f"{name}.py").read_text())
    (tmp_path / "sold.py").write_text((HERE / "sold.py").read_text())
    return tmp_path


def esault(folder, *arguments):
    code, out, err = esault_command.run(*arguments, cwd=folder)
    assert code == 0, err
    return out, err


def rows_of(path):
    pq = pytest.importorskip("pyarrow.parquet")
    return [row for part in parts(path) for row in pq.read_table(part).to_pylist()]


def test_orders_are_dataclasses_from_the_first_step_to_the_sink_also_when_their_state_moves():
    local = LocalRuntime(orders.topology(), spouts={"lines": [("f", line) for line in LINES * 200]})
    local.split("sum", local.sub_units("sum")[0])
    local.run_until_drained()
    totals = {row.key: row.value for row in local.landed("totals")}
    at = orders.read(LINES[2]).at
    north = orders.Total(orders.Shop.NORTH, 400, Decimal("400.00"), at, UUID(int=1))
    assert totals["north"] == north
    assert type(totals["south"].shop) is orders.Shop


def test_events_are_models_and_what_is_none_is_left_out():
    local = LocalRuntime(events.topology(), spouts={"lines": [("f", event) for event in EVENTS]})
    local.run_until_drained()
    assert [row.value for row in local.landed("clicks")] == [events.Event(**EVENTS[0]), events.Event(**EVENTS[3])]
    assert local.report().units["lines"].errors == 1


def test_a_typed_dict_goes_through_reduce():
    local = LocalRuntime(sold.topology())
    local.run_until_drained()
    assert sorted((key, value["revenue"]) for key, value in local.emitted("sold")) == [
        ("bread", 4.5),
        ("bread", 8.0),
        ("milk", 0.75),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "actors"])
def test_orders_land_as_a_table(folder, engine):
    esault(folder, "run", "orders.py", "--engine", engine, "--plain")
    rows = rows_of(folder / "out" / "totals")
    assert list(rows[0])[:5] == ["shop", "orders", "amount", "last", "largest"]
    found = sorted((row["shop"], row["orders"], row["amount"], row["largest"]) for row in rows)
    assert found == [
        ("north", 1, Decimal("1.50"), str(UUID(int=1))),
        ("north", 2, Decimal("2.00"), str(UUID(int=1))),
        ("south", 1, Decimal("2.50"), str(UUID(int=2))),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "actors"])
def test_events_land_as_lines_of_json(folder, engine):
    esault(folder, "run", "events.py", "--engine", engine, "--plain")
    rows = [json.loads(line)["value"] for line in (folder / "out" / "events.jsonl").read_text().splitlines()]
    assert rows == [
        {**CLICK, "tags": ["a", "b"], "place": PLACE},
        {**CLICK, "id": str(UUID(int=2)), "tags": [], "place": None},
    ]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "actors"])
def test_what_was_sold_lands_as_parquet(folder, engine):
    esault(folder, "run", "sold.py", "--engine", engine, "--plain")
    rows = rows_of(folder / "out" / "sold")
    assert sorted(tuple(row.values()) for row in rows) == [("bread", 3, 4.5), ("bread", 5, 8.0), ("milk", 1, 0.75)]


@pytest.mark.slow
def test_check_draws_their_types_and_warns_of_nothing(folder):
    out, err = esault(folder, "check", "orders.py")
    assert "by_key() [str, Order] → sum" in out
    assert err == ""
