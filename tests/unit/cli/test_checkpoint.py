"""`esault checkpoint export`: the state of a unit as a table."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.cli.checkpoint import _json_lines, _parquet

parquet = pytest.importorskip("pyarrow.parquet")
NAMES = st.sampled_from(["key", "key_", "key__", "n", "state"])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3))


def rows_of(path):
    return parquet.read_table(path).to_pylist()


def test_each_attribute_is_a_column_and_what_a_key_has_not_is_null(tmp_path):
    path = tmp_path / "out.parquet"
    assert _parquet(path, iter([("a", {"n": 1}), ("b", {"m": "x"}), ("c", {"n": 2, "m": "y"})])) == 3
    assert rows_of(path) == [
        {"key": "a", "n": 1, "m": None},
        {"key": "b", "n": None, "m": "x"},
        {"key": "c", "n": 2, "m": "y"},
    ]


def test_what_no_column_holds_stands_as_json(tmp_path):
    path = tmp_path / "out.parquet"
    states = [(("a", 1), {"n": 1, "big": 1 << 70}), (2, {"n": "x", "big": 1}), (3, [1, (2, 3)])]
    _parquet(path, iter(states))
    assert rows_of(path) == [
        {"key": '["a", 1]', "n": "1", "big": str(1 << 70), "state": None},
        {"key": "2", "n": '"x"', "big": "1", "state": None},
        {"key": "3", "n": None, "big": None, "state": "[1, [2, 3]]"},
    ]


@given(states=st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6))
def test_attributes_of_any_name_keep_their_rows(tmp_path_factory, states):
    """Also those that are called as the column of the keys, or as what such a one is called then."""
    path = tmp_path_factory.mktemp("out") / "out.parquet"
    _parquet(path, iter(enumerate(states)))
    table = parquet.read_table(path)
    names = list(dict.fromkeys(name for state in states for name in state))
    assert table.column_names[0] == "key" and len(set(table.column_names)) == len(names) + 1
    assert table.column("key").to_pylist() == list(range(len(states)))
    for name, column in zip(names, table.column_names[1:]):
        assert column == name or (name == "key" and column.strip("_") == "key")
        kinds = {type(state[name]) for state in states if state.get(name) is not None}
        wanted = [state.get(name) for state in states]
        if len(kinds) > 1:
            wanted = [None if value is None else json.dumps(value, ensure_ascii=False) for value in wanted]
        assert table.column(column).to_pylist() == wanted


def test_lines_of_json_are_utf_8_whatever_the_system_writes(tmp_path, monkeypatch):
    path = tmp_path / "out.jsonl"
    assert _json_lines(path, iter([("ä", {"n": "日"}), (1, None)])) == 2
    lines = path.read_bytes().decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"key": "ä", "state": {"n": "日"}}, {"key": 1, "state": None}]
