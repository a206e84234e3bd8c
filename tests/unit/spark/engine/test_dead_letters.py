"""Dead letters of an epoch, as the driver writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.spark.engine.dead_letters import write_dead_letters

LETTERS = [json.dumps({"id": f"{number:012x}", "key": number, "packed": "ü" * number}) for number in range(6)]


@given(cut=st.integers(min_value=0))
def test_an_epoch_that_is_committed_again_has_each_once_wherever_the_first_time_ended(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("dead")
    path, file = str(folder / "dead.jsonl"), folder / "dead.0.jsonl"
    write_dead_letters([(path, letter) for letter in LETTERS[:2]])
    before = file.read_bytes()
    write_dead_letters([(path, letter) for letter in LETTERS[2:]])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(before) + cut % (len(whole) - len(before) + 1)])
    write_dead_letters([(path, letter) for letter in LETTERS[2:]], again=True)
    found = []
    for line in file.read_bytes().splitlines():
        try:
            found.append(json.loads(line)["key"])
        except ValueError:
            pass  # the one that was torn
    assert found == list(range(6))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "dead.0.jsonl").mkdir()
    with pytest.raises(SinkError, match=r"dead letters in .* cannot be read: Is a directory"):
        write_dead_letters([(str(tmp_path / "dead.jsonl"), LETTERS[0])], again=True)
