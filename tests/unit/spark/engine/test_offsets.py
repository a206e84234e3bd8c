"""Offsets as Spark keeps them in its log."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.spark.engine.offsets import latest, pack_position, publish, resumed, start, unpack_position


@given(st.none() | st.binary(max_size=30))
def test_a_position_comes_back_through_json(position):
    assert unpack_position(json.loads(json.dumps(pack_position(position)))) == position


def test_before_the_first_tuple_nothing_is_read_and_parts_are_their_own(tmp_path):
    offset = start({"a": 2, "b": 0})
    offset["parts"]["a"][0][0] = 5
    assert offset["parts"] == {"a": [[5, None, False, []], [0, None, False, []]], "b": []}


def test_the_newest_is_found_and_the_first_stays(tmp_path):
    publish(tmp_path, start({"a": 1}), first=True)
    publish(tmp_path, {"now": 1.5, "parts": {"ü": []}})
    assert latest(tmp_path) == {"now": 1.5, "parts": {"ü": []}} and latest(tmp_path, first=True) == start({"a": 1})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.json", "latest.json"]
    publish(tmp_path, {"now": 2.0}, first=True)
    assert latest(tmp_path, first=True) == latest(tmp_path) == {"now": 2.0}


def log(folder, **batches):
    (folder / "offsets").mkdir(exist_ok=True)
    for name, last in batches.items():
        (folder / "offsets" / name.removeprefix("b")).write_text(f"v1\n{{}}\n{last}" if last is not None else "v1")


def test_the_newest_batch_of_the_log_counts_by_its_number(tmp_path):
    log(tmp_path, b2='{"now": 2}', b10='{"now": 10}', b9='{"now": 9}')
    (tmp_path / "offsets" / ".10.crc").write_text("x")
    assert (
        resumed(tmp_path) == {"now": 10} and resumed(tmp_path, 9) == {"now": 9} and resumed(tmp_path, 8) == {"now": 2}
    )


@pytest.mark.parametrize("last", [None, "-"])
def test_a_batch_without_an_offset_of_ours_is_passed_over(tmp_path, last):
    log(tmp_path, b1='{"now": 1}', b2=last)
    assert resumed(tmp_path) == {"now": 1} and resumed(tmp_path, 0) is None


def test_a_query_that_has_not_begun_has_none(tmp_path):
    assert resumed(tmp_path) is None
