"""Who wants a checkpoint under a name hears when one that began behind the wish is kept, or why none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.control.checkpoints.checkpoints import Checkpoints
from esault.control.run.savepoints import SavepointRequests
from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint


class Store:
    """Keeps names."""

    def __init__(self):
        self.kept = {}

    def check(self, name):
        if name in self.kept:
            raise UsageError(f"there is {name} already")

    def create(self, kept, name):
        if name == "full":
            raise CheckpointError("the disk is full")
        self.kept[name] = kept.number
        return Path(name)


class Idle:
    """A unit without sub-units, which may take part at any time."""

    moving, unsettled, finishing, splits, subs, wants_checkpoint = False, False, False, None, {}, False


@pytest.fixture
def taken():
    return Checkpoints(100.0, 30.0, lambda i, message: None, lambda cut: None)


def completed(number):
    return CompletedCheckpoint(number, "r", {}, begun_at=1.0, completed_at=3.5)


def test_a_checkpoint_begins_when_one_is_wanted_and_no_sooner(taken):
    taken.tick([Idle()], 10.0)
    assert taken.current is None
    assert taken.ask() == 1
    taken.tick([Idle()], 10.5)
    assert taken.newest == 0 and taken._last == 1


def test_the_one_that_is_under_way_will_not_do(taken):
    store = Store()
    requests = SavepointRequests(store)
    taken.begin([Idle()], 10.0)
    answer = requests.ask("first", taken)
    requests.complete(completed(1))
    assert (answer(), store.kept) == (None, {})
    requests.complete(completed(2))
    assert store.kept == {"first": 2}
    said = answer()
    assert (said["done"], said["savepoint"], said["path"], said["checkpoint"]) == (True, "first", "first", 2)
    assert said["seconds"] == 2.5
    requests.complete(completed(3))
    assert store.kept == {"first": 2}


def test_several_are_kept_with_one_checkpoint(taken):
    store = Store()
    requests = SavepointRequests(store)
    answers = [requests.ask(name, taken) for name in ("a", "b")]
    with pytest.raises(UsageError, match="is being made"):
        requests.ask("a", taken)
    requests.complete(completed(1))
    assert store.kept == {"a": 1, "b": 1}
    assert all(answer()["done"] for answer in answers)
    with pytest.raises(UsageError, match="already"):
        requests.ask("a", taken)


def test_who_waits_hears_that_it_was_given_up_or_cannot_be_kept(taken):
    requests = SavepointRequests(Store())
    full, late = requests.ask("full", taken), None
    requests.complete(completed(1))
    assert full() == {"error": "the disk is full"}
    late = requests.ask("late", taken)
    requests.given_up("count/3 did not do its part within 30 s")
    assert late() == {"error": "no checkpoint could be taken: count/3 did not do its part within 30 s"}


def test_one_that_was_given_up_is_not_begun_again_by_the_same_wish(taken):
    taken.ask()
    taken.tick([Idle()], 10.0)
    taken.current.waiting.add(1)
    taken._unit_of[1] = "count"
    taken.tick([Idle()], 50.0)
    assert taken.current is None
    taken.tick([Idle()], 50.1)
    assert taken.current is None
