"""Records as rows of every sink that writes files: filled by the names of their fields, or refused in words."""

from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from esault import Topology
from esault.errors import SinkError, TopologyFailed
from esault.sinks import JsonLines, Parquet, SparkTable
from esault.sinks.landing import parts, table_log
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo
from tests.unit.records import CLASSES, Colour, Keys, Pair

pq = pytest.importorskip("pyarrow.parquet")


@dataclasses.dataclass
class Order:
    id: UUID
    at: datetime
    day: date
    amount: Decimal
    file: Path
    note: str | None = None


ORDER = Order(UUID(int=1), datetime(2026, 1, 2, tzinfo=timezone.utc), date(2026, 1, 2), Decimal("1.50"), Path("a/b"))


def land(sink: Any, keys: list[Any], values: list[Any]) -> None:
    sink.check()
    sink.begin(RunInfo("r1", "topology", "out"))
    sink.open(Context("price", run="r1"))
    sink.write_columns(keys, values, 1.0, None)
    sink.write([Row(key, value, 1.0) for key, value in zip(keys, values)])
    sink.commit(0, sink.prepare(0))
    sink.close()
    sink.end(True)


def read(path: Any) -> list[dict[str, Any]]:
    return [row for part in parts(path) for row in pq.read_table(part).to_pylist()]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("columns", ["of the class", "named"])
def test_a_table_takes_records_by_the_names_of_their_fields(tmp_path: Any, cls: type, columns: str) -> None:
    values = [cls(count=1, price=2.5, colour=Colour.RED), cls(count=2, price=None, colour=Colour.BLUE)]
    if columns == "named":
        sink = Parquet(tmp_path / "t", {"key": str, "colour": str, "count": int, "price": float | None})
    else:
        sink = Parquet(tmp_path / "t", cls)
    land(sink, ["a", "b"], values)
    rows = [
        {"key": "a", "count": 1, "price": 2.5, "colour": "red"},
        {"key": "b", "count": 2, "price": None, "colour": "blue"},
    ]
    assert read(tmp_path / "t") == rows * 2
    assert list(read(tmp_path / "t")[0]) == (
        ["key", "colour", "count", "price"] if columns == "named" else ["key", "count", "price", "colour"]
    )


def test_a_table_of_a_typed_dict_takes_its_dicts(tmp_path: Any) -> None:
    land(SparkTable(tmp_path / "t", Keys, key="colour"), ["red"], [Keys(count=1, price=None, colour=Colour.RED)])
    (row, _) = read(tmp_path / "t")
    assert list(row) == ["colour", "count", "price", "_id", "_time", "_run"]
    assert (row["colour"], row["count"], row["price"]) == ("red", 1, None)


def test_what_is_text_in_a_table_is_the_same_text_in_json(tmp_path: Any) -> None:
    key = str(ORDER.id)
    land(SparkTable(tmp_path / "t", Order, key="id"), [key], [ORDER])
    land(JsonLines(tmp_path / "x.jsonl"), [key], [ORDER])
    (row, _) = read(tmp_path / "t")
    assert (row["id"], row["at"], row["day"], row["amount"], row["file"], row["note"]) == (
        *(key, ORDER.at, ORDER.day, ORDER.amount, "a/b", None),
    )
    assert json.loads((tmp_path / "x.jsonl").read_text().splitlines()[0])["value"] == {
        "id": key,
        "at": "2026-01-02T00:00:00+00:00",
        "day": "2026-01-02",
        "amount": "1.50",
        "file": "a/b",
        "note": None,
    }


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_json_lines_writes_records_as_objects(tmp_path: Any, cls: type) -> None:
    land(JsonLines(tmp_path / "x.jsonl", with_time=True), ["a"], [cls(count=1, price=None, colour=Colour.RED)])
    expected = {"key": "a", "value": {"count": 1, "price": None, "colour": "red"}, "time": 1.0}
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()] == [expected] * 2


def test_columns_of_a_class_and_the_same_columns_by_hand_are_one_table(tmp_path: Any) -> None:
    by_hand = Parquet(tmp_path / "t", {"key": str, "count": int, "price": float | None, "colour": str})
    land(by_hand, ["a"], [(1, None, "red")])
    again = Parquet(tmp_path / "t", Pair, "append")
    again.check()
    assert table_log(tmp_path / "t").state.schema == again.schema


@pytest.mark.parametrize(
    ("sink", "value", "message"),
    [
        (
            lambda path: SparkTable(path, Order),
            dataclasses.replace(ORDER, amount=1.5),  # type: ignore[arg-type]
            r"sink 'out': SparkTable\(.*\) of out: column 'amount' is Decimal, but key 'k' has 1.5, of type float",
        ),
        (
            lambda path: SparkTable(path, Order),
            dataclasses.replace(ORDER, note=["a"]),  # type: ignore[arg-type]
            r"column 'note' is str \| None, but key 'k' has \['a'\], of type list; a column holds one value",
        ),
        (
            lambda path: SparkTable(path, Order),
            Pair(1, None, Colour.RED),
            r"of out: the value of key 'k' has 'count', which is no column; the value's columns are id, at, day",
        ),
        (
            lambda path: SparkTable(path, Order, key="id"),
            ORDER,
            r"the value of key 'k' has 'id' too, .* there it is UUID.*; use .key_by\(lambda value: value.id\) before",
        ),
        (
            JsonLines,
            dataclasses.replace(ORDER, note=1j),  # type: ignore[arg-type]
            r"sink 'out': .*: the value of key 'k' cannot be written as JSON: value.note is of type complex; map it",
        ),
    ],
)
def test_what_cannot_land_ends_the_run_with_sink_column_type_and_remedy(
    tmp_path: Any, sink: Any, value: Any, message: str
) -> None:
    t = Topology("t")
    t.spout("rows", Items([("k", 1)])).map(lambda _: value).sink("out", sink(tmp_path / "out"))
    local = LocalRuntime(t, real=True, clock=ManualClock())
    with pytest.raises(TopologyFailed, match=message) as caught:
        local.run_until_drained()
    assert str(caught.value).startswith("sink 'out': ")


def test_one_value_that_does_not_fit_leaves_the_row_before_it_unseen_and_the_table_whole(tmp_path: Any) -> None:
    sink = Parquet(tmp_path / "t", Pair)
    sink.begin(RunInfo("r1", "topology", "out"))
    sink.open(Context("price", run="r1"))
    sink.write_columns(["a", "b"], [Pair(1, None, Colour.RED), Pair("2", None, Colour.RED)], 1.0, None)
    with pytest.raises(SinkError, match="column 'count' is int, but key 'b' has '2', of type str"):
        sink.prepare(0)
    assert read(tmp_path / "t") == []
