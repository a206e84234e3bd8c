"""What a pipeline declares: its graph, and mistakes in it; no Spark."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from pyspark.sql.types import DataType, DayTimeIntervalType, DecimalType, StructField, StructType

from esault.errors import UsageError
from esault.spark.columns import stored
from esault.spark.tables.code import code_mark
from esault.spark.tables.declared import Tables
from esault.spark.tables.graph import drawn, mermaid, nodes, ordered
from esault.spark.tables.step import _stored_reads

FACTOR = 2
RATES: dict[str, Any] = {"eur": 1.1, "steps": [1, 2]}
CODES = {"b", "a"}


LOOP: list[Any] = [1]
LOOP.append(LOOP)
LONG = re.compile("a" * 300)


class Price:
    FLOOR = 1

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def of(self, x: int) -> int:
        return max(x, self.FLOOR)


def wrapped(function: Any) -> Any:
    """As Spark's `udf` does."""

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        return function(*arguments)

    return called


@wrapped
def doubled(x: int) -> int:
    return 2 * x


STEPS = (len, lambda x: x)


class Fair(Price):
    @functools.cached_property
    def once(self) -> int:
        return 1


@functools.lru_cache
def kept(x: int) -> int:
    return 2 * x


KEPT = [kept]


def times(x: int, y: int) -> int:
    return x * y


twice = functools.partial(times, 2)


def helper(x: int) -> int:
    return x * FACTOR


def declared() -> Tables:
    tables = Tables(["sales-table", "customers"])

    @tables.materialized_view
    def gold(silver: Any, customers: Any) -> None: ...

    @tables.temporary_view
    def large(sales_table: Any) -> None: ...

    @tables.table
    def silver(large: Any, customers: Any) -> None: ...

    return tables


def test_dependencies_are_the_parameters_in_whatever_order_tables_are_declared() -> None:
    tables = declared()
    assert [one.name for one in ordered(tables)] == ["large", "silver", "gold"]
    assert tables.declared["large"].reads == {"sales_table": "sales-table"}
    assert _stored_reads(tables.declared["silver"], tables.declared) == (["sales-table", "customers"], ("sales-table",))
    assert _stored_reads(tables.declared["gold"], tables.declared) == (["silver", "customers"], ())


def test_the_graph_is_drawn() -> None:
    graph = nodes(declared())
    picture = ET.fromstring(drawn(graph))
    boxes = [one for one in picture if one.tag.endswith("rect")]
    lines = [one for one in picture if one.tag.endswith("path")]
    assert (len(boxes), len(lines)) == (5, 5)
    assert sum("stroke-dasharray" in line.attrib for line in lines) == 3  # read whole
    assert "n0 --> n2" in mermaid(graph)


def test_tables_in_a_circle_are_named() -> None:
    tables = Tables(["s"])

    @tables.materialized_view
    def one(two: Any) -> None: ...

    @tables.materialized_view
    def two(one: Any) -> None: ...

    with pytest.raises(UsageError, match="in a circle: one -> two -> one"):
        ordered(tables)


def no(s: Any) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": ["a"]}, "keys goes with sequence_by .upserts. or with merge"),
        (
            {"keys": ["a"], "merge": {"n": "avg"}},
            "merge of 'n' is one of sum, min, max, not 'avg'; a mean is a sum over",
        ),
        ({"keys": ["a"], "merge": {"a": "max", "n": "sum"}}, "'a' is one of keys, so it is not merged; leave it out"),
        ({"stored_as_scd_type": 2}, "need keys and sequence_by"),
        ({"keys": ["a"], "sequence_by": "b", "stored_as_scd_type": 3}, "is 1 or 2, not 3"),
        ({"stream": "x"}, "stream names 'x', which is no parameter"),
        ({"expect_all": {"a": "1"}, "expect_all_or_drop": {"a": "2"}}, "two expectations 'a'"),
        ({"expect": {"a": "1"}}, "table no has no option 'expect'; it has .*, expect_all, .*, keys, .*, retention"),
        ({"expect_all_or_drop": ["n > 0"]}, "expect_all_or_drop is a dict of conditions in SQL by name, such as"),
        ({"expect_all": {"a": 1}}, "expect_all is a dict of conditions"),
        ({"retention": -1}, "retention is a number of seconds, 0 or more, not -1"),
        ({"retention": "7 days"}, "retention is a number of seconds, 0 or more, not '7 days'"),
        ({"partition_cols": "day"}, "partition_cols is a list of columns, not 'day'"),
        ({"on_schema_change": "x"}, 'is "append_new_columns" or "fail", not'),
        ({"format": "orc"}, 'is "parquet" or "delta", not'),
        ({"name": "s"}, "there is a table 's' already"),
        ({"name": "a-b"}, "has letters, digits and _"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Tables(["s"]).table(**options)(no)


def test_a_parameter_that_is_no_table_is_named() -> None:
    tables = Tables(["sales"])
    tables.materialized_view(lambda sale: None, name="m")
    with pytest.raises(UsageError, match="materialized_view m: there is no table 'sale'; there are: m, sales"):
        ordered(tables)
    with pytest.raises(UsageError, match="sinks 'a-b' and 'a_b' are both written a_b"):
        Tables(["a-b", "a_b"]).table(no)
    with pytest.raises(UsageError, match="there is a table 'a-b' already"):  # which a parameter a_b would be
        Tables(["a-b"]).table(lambda a_b: None, name="a_b")


def test_the_mark_of_code_changes_with_it_and_with_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(s: Any) -> Any:
        return helper(s)

    def same(s: Any) -> Any:
        return helper(s)

    def other(s: Any) -> Any:
        return helper(s) + 1

    before = code_mark(first)
    assert before == code_mark(same)
    assert before != code_mark(other)
    assert before != code_mark(first, "options")
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert before != code_mark(first)


OURS = Price(2)


def changed(function: Any, new: Any) -> Any:
    """A function with another code, which uses the same names."""
    return types.FunctionType(new.__code__, function.__globals__, function.__name__)


@pytest.mark.parametrize(
    ("use", "name", "new"),
    [
        (lambda s: s * RATES["eur"], "RATES", {"eur": 1.2, "steps": [1, 2]}),
        (lambda s: s * RATES["eur"], "RATES", {"eur": 1.1, "steps": [1, 3]}),
        (lambda s: s in CODES, "CODES", {"a", "b", "c"}),
        (lambda s: s in LOOP, "LOOP", [2]),
        (lambda s: LONG.match(s), "LONG", re.compile("a" * 299 + "b")),
        (lambda s: OURS.of(s), "OURS", Price(3)),
        (lambda s: Price().of(s), "Price", type("Price", (), {**vars(Price), "FLOOR": 2})),
        (lambda s: Price().of(s), "Price", type("Price", (), {**vars(Price), "of": lambda self, x: x})),
        (lambda s: doubled(s), "doubled", wrapped(changed(doubled, lambda x: 3 * x))),
        (lambda s: STEPS[1](s), "STEPS", (len, lambda x: -x)),
        (lambda s: Fair().of(s), "Fair", type("Fair", (type("Price", (), {**vars(Price), "FLOOR": 2}),), {})),
        (lambda s: kept(s), "kept", functools.lru_cache(lambda x: 3 * x)),
        (lambda s: KEPT[0](s), "KEPT", [functools.lru_cache(lambda x: 3 * x)]),
        (lambda s: twice(s), "twice", functools.partial(times, 3)),
        (lambda s: twice(s), "twice", functools.partial(lambda x, y: x + y, 2)),
        (lambda s: Fair().once, "Fair", type("Fair", (Price,), {"once": functools.cached_property(lambda self: 2)})),
    ],
)
def test_the_mark_of_code_changes_with_collections_classes_and_wrapped_functions(
    monkeypatch: pytest.MonkeyPatch, use: Any, name: str, new: Any
) -> None:
    before = code_mark(use)
    monkeypatch.setitem(globals(), name, new)
    assert code_mark(use) != before
    monkeypatch.undo()
    assert code_mark(use) == before


MARK = """
from esault.spark.tables.code import code_mark

class Things:
    pass

def key(x):
    return x

SORTS, NAMES, THINGS = (key, len), {"a", "b", "c"}, [Things(), Things]

def table(sales, by=key, also=(len, Things)):
    return SORTS, NAMES, THINGS

print(code_mark(table))
"""


def test_the_mark_of_code_is_the_same_in_each_process() -> None:
    def run(seed: str) -> str:
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", MARK], env=environ, capture_output=True, text=True, check=True
        ).stdout

    assert run("1") == run("2") != ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (DecimalType(38, 6), r"column 'pay' is decimal\(38,6\), .* cast it to decimal\(38,18\), the one that it has"),
        (
            DayTimeIntervalType(0, 3),
            "column 'pay' is interval day to second, .* cast it to one of string, bigint, double",
        ),
    ],
)
def test_a_type_that_a_table_has_not_is_refused_with_one_that_it_has(kind: DataType, said: str) -> None:
    class Frame:
        schema = StructType([StructField("pay", kind)])

    with pytest.raises(UsageError, match=said):
        stored("sold", Frame())  # type: ignore[arg-type]
