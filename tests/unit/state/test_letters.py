"""Dead letters on disk, and what is said of where they are."""

from __future__ import annotations

import json

from esault.state.dead_letter_file import DeadLetterFile


def test_a_letter_file_says_where_its_letters_are(tmp_path):
    box = DeadLetterFile(str(tmp_path / "out" / "bad.jsonl"), 7)
    box.put({"key": 1})
    box.close()
    assert str(box) == str(tmp_path / "out" / "bad.7.jsonl")
    with open(str(box)) as file:
        assert json.loads(file.read()) == {"key": 1}
