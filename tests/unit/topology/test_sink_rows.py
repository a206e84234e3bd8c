"""Rows that the engine makes for `write` are rows like those that users make."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Generic, TypeVar, get_origin

import pytest

from esault.topology.sink import Row, Sink


class Kept(Sink):
    """Keeps what it is given."""

    def write(self, rows):
        self.rows = rows


def made(ids: Any = ("s:1", "s:2")) -> list[Row]:
    sink = Kept()
    sink.write_columns(("a", "b"), (1, [2]), 3.0, ids)
    return list(sink.rows)


class TestMadeRows:
    def test_they_hold_what_the_columns_hold(self):
        assert made() == [Row("a", 1, 3.0, "s:1"), Row("b", [2], 3.0, "s:2")]
        assert made(None) == [Row("a", 1, 3.0), Row("b", [2], 3.0)]

    def test_they_are_rows_with_fields_and_look_it(self):
        row = made()[0]
        assert isinstance(row, Row) and (row.key, row.value, row.time, row.id) == ("a", 1, 3.0, "s:1")
        assert repr(row) == repr(Row("a", 1, 3.0, "s:1")) and hash(row) == hash(Row("a", 1, 3.0, "s:1"))
        assert row._asdict() == {"key": "a", "value": 1, "time": 3.0, "id": "s:1"}
        key, value, *_ = row
        assert (key, value) == ("a", 1)

    def test_they_can_be_changed_and_matched_as_rows_are(self):
        row = made()[0]._replace(key="c")
        assert isinstance(row, Row) and row == Row("c", 1, 3.0, "s:1")
        match row:
            case Row(key=key):
                assert key == "c"
            case _:
                pytest.fail("it is no row")

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_a_copy_of_one_is_a_row(self, protocol):
        for row in made():
            for twin in (pickle.loads(pickle.dumps(row, protocol)), copy.copy(row), copy.deepcopy(row)):
                assert twin == row and type(twin) is Row

    def test_they_hold_no_attributes_beside_their_fields(self):
        with pytest.raises(AttributeError):
            made()[0].other = 1  # type: ignore[attr-defined]


def test_types_in_brackets_are_refused_with_what_to_write():
    with pytest.raises(TypeError, match=r"Sink takes no types in brackets.*write `class Mine\(Sink\)`"):
        Sink[str, int]
    with pytest.raises(TypeError, match=r"write `class Mine\(Kept\)`"):
        Kept[str]


def test_a_sink_may_be_generic_by_itself():
    kind = TypeVar("kind")

    class Own(Sink, Generic[kind]):
        """Has types of its own."""

    assert get_origin(Own[int]) is Own
