"""The place of a checkpoint as a user says it: a folder, a topology's name, a savepoint of either."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.errors import UsageError
from esault.object_store.object_path import ObjectPath
from esault.state.checkpoint_place import checkpoint_place, savepoint_place, state_place


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """`.esault/words` and `.esault/other` with savepoints, and `state` elsewhere with one."""
    monkeypatch.chdir(tmp_path)
    for place in (".esault/words/savepoints/first", ".esault/other/savepoints/second", "state/savepoints/kept"):
        Path(place).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "place"), [("words", ".esault/words"), ("state", "state"), (".esault/other", ".esault/other")]
)
def test_a_state_directory_is_a_folder_or_a_topologys_name(text, place):
    assert state_place(text) == Path(place)
    assert checkpoint_place(text) == Path(place)


@pytest.mark.parametrize("content", ["savepoints/mine", "checkpoint-00000001.json"])
def test_a_folder_with_state_comes_before_a_topology_of_its_name(home, content):
    (home / "words" / content).mkdir(parents=True)
    assert state_place("words") == checkpoint_place("words") == Path("words")


def test_a_folder_of_something_else_hides_no_state_of_its_name(home):
    (home / "words" / "first").mkdir(parents=True)  # a package that is called as its topology is
    (home / "first").mkdir()
    (home / "second").mkdir()
    words = Path(".esault/words")
    assert state_place("words") == checkpoint_place("words") == words
    assert checkpoint_place("words/first") == savepoint_place("first", words) == words / "savepoints/first"
    assert savepoint_place("second", words) == Path(".esault/other/savepoints/second")
    with pytest.raises(UsageError, match=r"words has no savepoint 'none'; there are: first"):
        checkpoint_place("words/none")
    (home / "copied" / "checkpoint-00000001.json").mkdir(parents=True)
    assert savepoint_place("copied", words) == Path("copied")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("words/first", ".esault/words/savepoints/first"),
        ("words/first/", ".esault/words/savepoints/first"),
        ("state/kept", "state/savepoints/kept"),
        (".esault/other/second", ".esault/other/savepoints/second"),
        ("state/savepoints/kept", "state/savepoints/kept"),
    ],
)
def test_a_savepoint_is_said_behind_its_state_directory(text, place):
    assert checkpoint_place(text) == Path(place)
    assert savepoint_place(text, Path(".esault/words")) == Path(place)


def test_what_is_not_there_is_refused_with_what_is():
    with pytest.raises(UsageError, match=r"nothing is no state directory, and there is no .esault/nothing"):
        state_place("nothing")
    with pytest.raises(UsageError, match=r"state has no savepoint 'none'; there are: kept"):
        checkpoint_place("state/none")
    with pytest.raises(UsageError, match=r"a/b is no state directory, and there is no .esault/a/b"):
        checkpoint_place("a/b")
    with pytest.raises(UsageError, match=r"no savepoint of that name in .esault/words .there are: first. or beside it"):
        savepoint_place("none", Path(".esault/words"))


def test_a_name_alone_is_of_this_state_directory_or_of_the_only_one_beside_it(home):
    words = Path(".esault/words")
    assert savepoint_place("first", words) == words / "savepoints/first"
    assert savepoint_place("second", words) == Path(".esault/other/savepoints/second")
    assert savepoint_place("second", Path("state")) == Path(".esault/other/savepoints/second")
    (home / ".esault/third/savepoints/second").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"several have that name: .*other.*third.*say which, by its path"):
        savepoint_place("second", words)
    (home / ".esault/words/savepoints/second").mkdir()
    assert savepoint_place("second", words) == words / "savepoints/second"


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_name_is_said_to_be_empty(text):
    with pytest.raises(
        UsageError, match=r"--from-savepoint is empty: say the name .* in .esault/words there are: first"
    ):
        savepoint_place(text, Path(".esault/words"))


def test_in_an_object_store_the_manifest_is_what_makes_a_savepoint(request):
    state = ObjectPath(f"memory://places/{abs(hash(request.node.nodeid))}", ValueError)
    with pytest.raises(UsageError, match="is no state directory: nothing is there"):
        state_place(str(state))
    (state / "savepoints" / "kept" / "checkpoint-00000001.json").write_bytes(b"{}")
    assert str(checkpoint_place(f"{state}/kept")) == f"{state}/savepoints/kept"
    assert str(checkpoint_place(f"{state}/savepoints/kept")) == f"{state}/savepoints/kept"
    assert str(checkpoint_place(str(state))) == str(state)
    assert str(savepoint_place("kept", state)) == f"{state}/savepoints/kept"
    with pytest.raises(UsageError, match="there are: kept"):
        savepoint_place("none", state)
