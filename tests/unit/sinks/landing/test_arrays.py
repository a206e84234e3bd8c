"""Arrays land as the rows that they stand for would: the same table, or the same refusal."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pytest

from esault.errors import SinkError
from esault.payload.column import plain
from esault.sinks.landing import arrays, buffer
from esault.sinks.landing.buffer import Buffer
from esault.sinks.landing.schema import ADDED, parse_columns

pa = pytest.importorskip("pyarrow")
N = 300
TEXTS = [f"k{i}" for i in range(N)]
MOMENT = datetime(2026, 7, 1, tzinfo=timezone.utc)


def table(columns, keys, values, ids=None, added=True):
    schema = parse_columns("T", columns) + (ADDED if added else ())
    made = Buffer("T", schema, "run-1")
    made.add(["first"] if columns["key"] is str else [0], plain(values)[:1], 1.0, None if ids is None else ["i"])
    made.add(keys, values, 2.5, ids)
    rows, data = made.parquet()
    assert rows == len(made) == N + 1
    import pyarrow.parquet as pq

    return pq.read_table(pa.BufferReader(data))


CASES = [
    ({"key": str, "n": int}, pa.array(TEXTS), np.arange(N)),
    ({"key": str, "n": int}, np.array(TEXTS), np.arange(N, dtype="u2")),
    ({"key": int, "n": float}, np.arange(N, dtype="i2")[::-1], np.arange(N) * 0.5),
    ({"key": int, "n": float}, np.arange(N, dtype=">i4"), np.arange(N, dtype="f4")[::-1]),
    ({"key": int, "n": bool}, pa.array(range(N), pa.uint32()), np.arange(N) % 3 == 0),
    ({"key": str, "n": bytes | None}, pa.array(TEXTS, pa.large_string()), pa.array([None, b"x"] * (N // 2))),
    (
        {"key": str, "n": datetime},
        pa.array(TEXTS).dictionary_encode(),
        pa.array([MOMENT] * N, pa.timestamp("s", "UTC")),
    ),
    ({"key": str, "n": date | None}, TEXTS, pa.array([date(2026, 7, 1), None] * (N // 2))),
    ({"key": str, "n": Decimal}, TEXTS, pa.array([Decimal("1.50")] * N)),
    ({"key": int}, np.arange(N), np.arange(N)),
    ({"key": int, "a": int, "b": str | None}, np.arange(N), pa.record_batch({"b": TEXTS, "a": list(range(N))})),
    ({"key": int, "a": int, "b": str | None}, np.arange(N), pa.record_batch({"a": list(range(N))})),
    ({"key": int, "a": int}, np.arange(N), pa.array([{"a": i} for i in range(N + 1)])[1:]),
    ({"key": int, "a": int}, np.arange(N), [(i,) for i in range(N)]),
    ({"key": int, "n": int}, np.arange(N, dtype="u8"), np.arange(N, dtype="u8")),
]


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(("columns", "keys", "values"), CASES)
def test_arrays_land_as_their_rows_would(columns, keys, values, added):
    ids = [f"id{i}" for i in range(N)] if added else None
    found = table(columns, keys, values, ids, added)
    assert found.equals(table(columns, plain(keys), plain(values), ids, added))
    assert found["key"].to_pylist()[1:] == list(plain(keys))


@pytest.mark.parametrize(
    ("columns", "keys", "values"),
    [
        ({"key": str, "n": int}, pa.array(TEXTS), np.arange(N) * 0.5),
        ({"key": str, "n": float}, pa.array(TEXTS), np.arange(N) == 1),
        ({"key": int, "n": int}, pa.array(TEXTS), np.arange(N)),
        ({"key": str, "n": int}, pa.array(TEXTS), pa.array([None, 1] * (N // 2))),
        ({"key": str, "n": datetime}, pa.array(TEXTS), pa.array([datetime(2026, 7, 1)] * N)),
        ({"key": str, "n": int}, pa.array(TEXTS), np.full(N, 2**63, "u8")),
        ({"key": int, "a": int}, np.arange(N), pa.record_batch({"a": list(range(N)), "more": TEXTS})),
        ({"key": int, "a": int, "b": int}, np.arange(N), np.arange(N)),
        ({"key": int, "a": int, "b": int}, np.arange(N), pa.record_batch({"a": list(range(N))})),
        ({"key": str, "n": int}, [5, *TEXTS[1:]], np.arange(N)),
    ],
)
def test_what_does_not_fit_is_refused_as_its_rows_would_be(columns, keys, values):
    said = []
    for kind in (plain, lambda column: column):
        made = Buffer("T", parse_columns("T", columns), "run-1")
        with pytest.raises(SinkError) as refused:
            made.add(kind(keys), kind(values), 1.0, None)
            made.parquet()
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_arrays_that_fit_are_not_looked_at_one_by_one(monkeypatch):
    monkeypatch.setattr(buffer, "unfold", None)
    made = Buffer("T", parse_columns("T", {"key": int, "n": float}), "run-1")
    made.add(np.arange(N), np.arange(N) * 0.5, 1.0, None)
    assert made.parquet()[0] == N


def test_few_rows_of_arrays_wait_for_more():
    made = Buffer("T", parse_columns("T", {"key": int, "n": float}), "run-1")
    for _ in range(10):
        made.add(np.arange(10), np.arange(10) * 0.5, 1.0, None)
    assert made.bytes == 0
    assert made.parquet()[0] == 100


def test_what_is_neither_a_batch_nor_structs_has_no_fields():
    assert (
        arrays.from_columns("T", parse_columns("T", {"key": int, "a": int, "b": int}), np.arange(2), np.arange(2))
        is None
    )
