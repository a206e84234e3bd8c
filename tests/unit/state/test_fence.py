"""Which run completes checkpoints in an object store: of those that use one place the one that began last, and no other."""

from __future__ import annotations

import secrets

import pytest

from esault.errors import FencedError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.state.place import place_of
from esault.state.state_dir import StateDir

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")


@pytest.fixture
def place():
    return place_of(f"memory://{secrets.token_hex(6)}/state")


def checkpoint(number, run="run"):
    return CompletedCheckpoint(number, run, {}, (), 1, 10.0, 11.0, "words", False)


def began(place):
    """A run that has begun there."""
    held = StateDir(place)
    held.newest()
    held.claim()
    return held


def numbers(place):
    return [int(path.stem[-8:]) for path in StateDir(place, locked=False).manifests()]


def test_a_claim_is_no_checkpoint_and_numbers_go_on_behind_it(place):
    first = began(place)
    assert (first.last_number, numbers(place)) == (1, [])
    first.keep(checkpoint(2))
    assert began(place).last_number == 3
    assert numbers(place) == [2]


def test_an_old_run_completes_nothing_whichever_number_it_is_at(place):
    old = began(place)
    old.keep(checkpoint(2))
    new = began(place)
    for number in (3, 7):
        with pytest.raises(FencedError, match="another run has taken memory://.* over, on host .* .process"):
            old.keep(checkpoint(number, "old"))
    new.keep(checkpoint(4, "new"))
    assert numbers(place) == [4, 2]
    kept, _ = StateDir(place, locked=False).newest()
    assert kept.run == "new"


def test_an_old_run_whose_names_were_removed_since_completes_nothing(place):
    old = began(place)
    old.keep(checkpoint(2))
    new = began(place)
    for number in range(4, 9):
        new.keep(checkpoint(number, "new"))
    assert numbers(place) == [8, 7]
    with pytest.raises(FencedError):
        old.keep(checkpoint(3, "old"))
    kept, _ = StateDir(place, locked=False).newest()
    assert (kept.number, kept.run) == (8, "new")


def test_numbers_that_were_given_up_are_taken_too(place):
    old = began(place)
    late = StateDir(place)
    late.newest()  # chooses what to go on from while the old one still works
    old.keep(checkpoint(5))  # 2 to 4 were given up
    with pytest.raises(UsageError, match="a run completes checkpoints in .* at this moment"):
        late.claim()
    assert numbers(place) == [5]


def test_of_two_runs_that_begin_at_once_one_goes_on(place):
    one, other = StateDir(place), StateDir(place)
    one.newest()
    other.newest()
    other.claim()
    with pytest.raises(UsageError, match="end it first"):
        one.claim()
    other.keep(checkpoint(2))


def test_another_process_of_the_run_completes_with_its_number(place):
    held = began(place)
    driver = StateDir(place, locked=False, last_number=held.last_number)
    began(place)
    with pytest.raises(FencedError):
        driver.keep(checkpoint(2))


def test_what_the_store_took_and_did_not_answer_is_found_to_be_ours(place, monkeypatch):
    held = began(place)
    plain = type(place).write_absent
    cut = [True]

    def unanswered(self, data):
        found = plain(self, data)
        if cut.pop():
            cut.append(False)
            raise OSError("no answer")
        cut.append(False)
        return found

    monkeypatch.setattr(type(place), "write_absent", unanswered)
    with pytest.raises(Exception, match="checkpoint 2 cannot be completed"):
        held.keep(checkpoint(2))
    held.keep(checkpoint(3))
    assert numbers(place) == [3, 2]


def test_a_run_begins_behind_a_number_from_elsewhere(place):
    held = StateDir(place)
    held.newest()
    held.claim(before=70)
    held.keep(checkpoint(71))
    assert numbers(place) == [71]
    assert began(place).last_number == 72


def test_a_savepoint_is_there_with_its_manifest_and_gone_with_it(place):
    held = began(place)
    held.keep(checkpoint(2))
    made = held.savepoints.create(checkpoint(2), "one")
    assert held.savepoints.names() == ["one"]
    assert StateDir(made, locked=False).newest()[0].number == 2
    with pytest.raises(UsageError, match="there is a savepoint 'one' already"):
        held.savepoints.create(checkpoint(2), "one")
    next(made.glob("checkpoint-*.json")).unlink()
    (made / "00000002-1.state").write_bytes(b"left behind")
    assert held.savepoints.names() == []
    held.savepoints.create(checkpoint(2), "one")
    assert list(made.children()) == ["checkpoint-00000002.json"]
    held.savepoints.remove("one")
    assert not made.is_dir()


def test_beginning_anew_leaves_the_claim(place):
    old = began(place)
    old.keep(checkpoint(2))
    new = StateDir(place)
    new.claim()
    new.clear()
    assert numbers(place) == []
    with pytest.raises(FencedError):
        old.keep(checkpoint(3))
    new.keep(checkpoint(4))
