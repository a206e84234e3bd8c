"""Columns of few keys, as they travel between tasks."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from esault.spark.engine.dictionary_encoding import decoded, encoded

KINDS = st.one_of(st.sampled_from(["a", "b"]), st.sampled_from([0, 1, True, False, None, 1.0, 0.0, -0.0, b"a", (1,)]))


def sent(column: list[Any]) -> Any:
    codec = Codec()
    return decoded(codec.unpack(codec.pack(encoded(column))))


def told(rows: Any) -> list[tuple[type, str]]:
    return [(type(row), repr(row)) for row in rows]


@given(st.one_of(st.lists(KINDS, max_size=3), st.lists(st.sampled_from(["a", "b", "\ud800"]))), st.integers(1, 40))
@example(["a"], 32)
@example([1], 40)
@example([1, True], 40)
@example([0.0, -0.0], 40)
def test_rows_come_back_with_their_types(some: list[Any], times: int) -> None:
    column = some * times
    assert told(sent(column)) == told(column)


@pytest.mark.parametrize(
    ("distinct", "later", "bytes_a_row"), [(1, 1, 0.1), (100, 256, 1.5), (100, 257, 2.6), (100, 4096, 6)]
)
def test_each_of_few_travels_once_and_is_one_object(distinct: int, later: int, bytes_a_row: float) -> None:
    r = random.Random(1)
    names = [f"{i:>4}" for i in range(later)]
    column = [str(name) for name in r.choices(names[:distinct], k=512) + r.choices(names, k=7000) + names[:distinct]]
    rows = sent(column)
    assert list(rows) == column and len(Codec().pack(encoded(column))) < bytes_a_row * len(column)
    assert len(set(map(id, rows))) == len(set(column))


def test_the_bytes_do_not_follow_from_which_objects_the_keys_are() -> None:
    shared = ["trip 7"] * 100 + ["trip 8"] * 100
    apart = ["".join(list(key)) for key in shared]
    assert Codec().pack(encoded(shared)) == Codec().pack(encoded(apart))


@pytest.mark.parametrize(
    "column", [[[1]] * 64, [{"a": 1}] * 64, ["a", [1]] * 64, [1.5] * 64, list(range(64)), ["a"] * 31]
)
def test_other_columns_are_rows(column: list[Any]) -> None:
    assert type(encoded(column)) is Rows and told(sent(column)) == told(column)


def test_what_is_no_list_stays_as_it_is() -> None:
    arrays = (b"arrays", Rows([1]))
    assert all(encoded(each) is each for each in arrays) and decoded(arrays) is arrays
