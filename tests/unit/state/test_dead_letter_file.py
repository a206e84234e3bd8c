"""Dead letters on disk: each is a line, whatever the tuple holds, and torn ones do not harm the next."""

from __future__ import annotations

import json

import pytest

from esault.errors import SinkError
from esault.state.dead_letter_file import DeadLetterFile


class Odd:
    def __repr__(self):
        raise RuntimeError("no repr")


def circle():
    found: list = []
    found.append(found)
    return found


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_incarnation_stands_before_the_ending(tmp_path):
    for name, made in (("dead.jsonl", "dead.7.jsonl"), ("x/y.z/dead", "x/y.z/dead.7"), ("ü.a.b", "ü.a.7.b")):
        file = DeadLetterFile(str(tmp_path / name), 7)
        file.put({"id": "a"})
        file.close()
        assert str(file) == str(tmp_path / made) and lines(tmp_path / made) == [{"id": "a"}]


@pytest.mark.parametrize(
    "make", [Odd, lambda: [Odd()], circle, lambda: {"a": circle()}, lambda: 10**5000, lambda: {1: 10**5000}]
)
def test_values_that_cannot_be_written_do_not_keep_a_dead_letter_from_being_kept(tmp_path, make):
    value = make()
    file = DeadLetterFile(str(tmp_path / "d.jsonl"), 1)
    file.put({"id": "a", "key": "k", "value": value, "error": "E: x", "packed": "cGFja2Vk"})
    file.put({"id": "b", "key": value, "value": 1})
    file.sync()
    file.close()
    one, two = lines(tmp_path / "d.1.jsonl")
    assert (one["id"], one["key"], one["error"], one["packed"]) == ("a", "k", "E: x", "cGFja2Vk")
    assert (two["id"], two["value"]) == ("b", 1) and one["value"] and two["key"]


def test_values_that_json_does_not_know_are_kept_as_their_repr(tmp_path):
    file = DeadLetterFile(str(tmp_path / "d.jsonl"), 1)
    file.put({"id": "a", "value": {1, 2} and {"s": {3}, ("t",): 1, "n": None}, "key": b"\xff"})
    file.close()
    assert lines(tmp_path / "d.1.jsonl") == [{"id": "a", "value": {"s": "{3}", "n": None}, "key": "b'\\xff'"}]


def test_a_torn_line_is_not_there_and_the_next_one_is(tmp_path):
    path = tmp_path / "d.1.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b", "val')
    file = DeadLetterFile(str(tmp_path / "d.jsonl"), 1)
    assert file.ids() == {"a"}
    file.put({"id": "c"})
    file.sync()
    file.close()
    assert file.ids() == {"a", "c"}
    file.put({"id": "d"})
    file.close()
    assert file.ids() == {"a", "c", "d"} and len(path.read_text().splitlines()) == 4


def test_lines_that_are_no_dead_letters_have_no_id(tmp_path):
    path = tmp_path / "d.1.jsonl"
    path.write_bytes(b'{"restored": 3, "run": "r"}\n\n[1]\n7\n"id"\n\xff\n{"id": "a"}\n')
    assert DeadLetterFile(str(tmp_path / "d.jsonl"), 1).ids() == {"a"}


def test_where_there_is_no_file_there_are_none(tmp_path):
    file = DeadLetterFile(str(tmp_path / "none" / "d.jsonl"), 1)
    assert file.ids() == set()
    file.sync()
    file.close()
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_written_is_said_by_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match=r"d\.1\.jsonl"):
        DeadLetterFile(str(tmp_path / "file" / "d.jsonl"), 1).put({"id": "a"})
    (tmp_path / "d.1.jsonl").mkdir()
    for call in (lambda file: file.ids(), lambda file: file.put({"id": "a"})):
        with pytest.raises(SinkError, match=r"d\.1\.jsonl"):
            call(DeadLetterFile(str(tmp_path / "d.jsonl"), 1))
