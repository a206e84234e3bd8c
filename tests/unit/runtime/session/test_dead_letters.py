"""Dead letters that are sent again: in portions of a bounded size, each once or with a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import UsageError
from esault.runtime.session.dead_letters import PORTION, _portions, dead_letters_at, dead_letters_of
from esault.sources.dead_letter_files import DeadLetter

sizes = st.integers(0, PORTION // 4) | st.sampled_from([0, 1, PORTION - 1, PORTION, PORTION + 1, PORTION // 2])


def letter(number, size, sent=False, at="count"):
    return DeadLetter("f", {"id": f"{number}", "at": at, "packed": "x" * size, "time": 0.0}, sent)


@given(st.lists(st.tuples(sizes, st.booleans(), st.sampled_from(["count", "", None])), max_size=12))
def test_each_is_in_one_portion_or_refused(made):
    letters = [letter(number, *each) for number, each in enumerate(made)]
    refused: dict[str, str] = {}
    portions = list(_portions(letters, refused))
    sent = [each.id for portion in portions for each in portion]
    assert sorted([*sent, *refused], key=int) == [each.id for each in letters]
    assert sent == sorted(sent, key=int)
    for portion in portions:
        assert portion and sum(len(each.record["packed"]) for each in portion) <= PORTION
    for each in letters:
        size = len(each.record["packed"])
        assert (each.id in refused) is (each.sent or not each.can_be_sent or size > PORTION)


def test_those_of_several_paths_are_there_once_in_the_order_of_their_times(tmp_path):
    def write(name, *records):
        lines = [json.dumps({"id": id, "time": time, "unit": "u", "error": "e"}) for id, time in records]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("a.jsonl", ("one", 3.0), ("two", 1))
    write("b.jsonl", ("three", 2.5), ("two", 1))
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    assert [dead.id for dead in dead_letters_of(map(str, paths))] == ["two", "three", "one"]
    assert [dead.id for dead in dead_letters_at(str(tmp_path))] == ["two", "three", "one"]


def test_an_empty_folder_has_none_and_another_name_is_refused(tmp_path):
    assert dead_letters_at(str(tmp_path)) == []
    with pytest.raises(UsageError, match="no topology of this name is running"):
        dead_letters_at(str(tmp_path / "none"))


def test_two_that_fit_alone_but_not_together_go_one_by_one():
    half = PORTION // 2 + 1
    portions = _portions([letter(number, half) for number in range(3)], {})
    assert [[each.id for each in portion] for portion in portions] == [["0"], ["1"], ["2"]]
