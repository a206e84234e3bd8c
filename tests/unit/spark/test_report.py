"""Report tables as text."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from esault.spark.report import ReportTable, cell, render


def test_a_table_is_aligned_by_kind() -> None:
    report = ReportTable("top words", ("word", "total"), ("text", "number"), (("the", 1234), ("a", None)))
    assert render(report) == "top words\nword  total\n----  -----\nthe   1,234\na         -"


def test_long_and_empty_tables_say_so() -> None:
    rows = tuple((i,) for i in range(70))
    assert render(ReportTable("n", ("i",), ("number",), rows)).endswith("49\n... and 20 more rows")
    assert render(ReportTable("n", ("i",), ("number",), rows, cut=True)).endswith(
        "... and more: the first 50 rows are shown"
    )
    assert render(ReportTable("n", ("i",), ("number",), ())) == "n\ni\n-\n(no rows)"
    assert render(ReportTable("n", ("i",), ("number",), ((1,),), plot="x.png")).endswith("plot: x.png")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "true"),
        (1234567, "1,234,567"),
        (0.0, "0"),
        (0.5, "0.5"),
        (1 / 3, "0.333"),
        (1234.56, "1,234.6"),
        (100.0, "100"),
        (1e-9, "1.000e-09"),
        (float("nan"), "nan"),
        (Decimal("1.500000000000000000"), "1.5"),
        (Decimal("100"), "100"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), "2026-01-02 03:04:05"),
        (datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=timezone(timedelta(hours=1))), "2026-01-02 02:04:05.000060"),
        (date(2026, 1, 2), "2026-01-02"),
        ("a\nb\t\x1b[31m", "a\\nb\\t\\x1b[31m"),
        ("x" * 100, "x" * 57 + "..."),
        (b"\x00", "b'\\x00'"),
    ],
)
def test_one_value_is_one_line(value: object, text: str) -> None:
    assert cell(value) == text
