"""`esault new`: a file that runs as it is, and names that could not."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from esault.cli.new import command
from esault.errors import UsageError
from esault.testing import LocalRuntime
from esault.topology.locate import locate


def new(path):
    return CliRunner().invoke(command, [str(path)], standalone_mode=False)


@pytest.mark.parametrize("name", ["new_words.py", "my_new_words.py", "_private.py", "Ümlaut.py", "x1.py", "a__b_.py"])
def test_what_is_written_is_a_topology_that_counts_its_own_words(tmp_path, name):
    path = tmp_path / "made" / name
    found = new(path)
    assert found.exception is None and f"esault run {path}" in found.output
    topology = locate(str(path)).load_module().topology(out=str(tmp_path / "out.jsonl"))
    local = LocalRuntime(topology)
    local.run_until_drained()
    counts = dict(local.emitted("count"))
    words = path.read_text("utf-8").lower().split()
    assert counts == {word: words.count(word) for word in set(words)}


@pytest.mark.parametrize("name", ["words", "words.txt", "my-words.py", "1.py", "a b.py", ".py"])
def test_names_that_cannot_be_imported_are_refused_and_nothing_is_made(tmp_path, name):
    found = new(tmp_path / name)
    assert isinstance(found.exception, UsageError) and os.listdir(tmp_path) == []


def test_the_remedy_is_a_name_that_is_taken(tmp_path):
    for name in ("my-words.py", "1.py", "a b.py"):
        said = str(new(tmp_path / name).exception).rpartition("such as ")[2]
        assert new(tmp_path / said).exception is None


def test_what_is_there_stays(tmp_path):
    path = tmp_path / "words.py"
    path.write_text("mine")
    assert isinstance(new(path).exception, UsageError) and path.read_text() == "mine"
    assert isinstance(new(path / "words.py").exception, UsageError) and path.read_text() == "mine"
