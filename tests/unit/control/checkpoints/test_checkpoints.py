"""Checkpoints under way: who is waited for, what is kept of one, and what is done when it cannot be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.control.checkpoints.checkpoints import LATE, LONGEST_BACKOFF, PATIENT, PUT_OFF, Checkpoints, Cut
from esault.errors import CheckpointError
from esault.messages.checkpoint import Abandon, Checkpoint, Completed, NotSnapped, Piece, Snapped


def record(incarnation, part=0, **fields):
    return SimpleNamespace(
        **{"incarnation": incarnation, "part": part, "leaving": False, "started_at": 0.0, "finished": False, **fields}
    )


def unit(name, *records, **fields):
    kept = {"moving": False, "splits": None, "unsettled": False, "finishing": False, "wants_checkpoint": False}
    return SimpleNamespace(name=name, subs={each.incarnation: each for each in records}, **{**kept, **fields})


def piece(name, base=False):
    return Piece(name, base, 1, 1, 0)


class Run:
    def __init__(self, *units, every=0.0, patience=30.0, **options):
        self.units, self.told, self.kept, self.troubles = units, [], [], []
        self.refuse = ""
        self.checkpoints = Checkpoints(
            every,
            patience,
            lambda i, message: self.told.append((i, message)),
            self.keep,
            troubled=self.troubles.append,
            **options,
        )

    def keep(self, cut):
        if self.refuse:
            raise CheckpointError(self.refuse)
        self.kept.append(cut)

    def begin(self, now=0.0, **options):
        return self.checkpoints.begin(self.units, now, **options)

    def said(self):
        told, self.told = self.told, []
        return told

    def snapped(self, incarnation, now=1.0, **fields):
        self.checkpoints.snapped(Snapped(incarnation, self.checkpoints.current.number, **fields), now)


def test_one_is_complete_when_the_last_has_done_its_part_and_is_kept_before_anyone_is_told():
    run = Run(unit("a", record(1)), unit("b", record(2, part=0), record(3, part=1)), newest=4)
    assert run.begin(10.0) == 5
    assert run.said() == [(i, Checkpoint(5, False)) for i in (1, 2, 3)]
    assert run.checkpoints.current.places == {1: 0, 2: 0, 3: 1}
    for incarnation in (3, 1):
        run.snapped(incarnation)
    assert not run.kept
    assert not run.said()
    told_when_kept = []
    run.checkpoints._keep = lambda cut: told_when_kept.append(list(run.told))
    run.snapped(2, 12.5, finished=False)
    assert told_when_kept == [[]]
    assert sorted(run.said(), key=lambda each: each[0]) == [(i, Completed(5)) for i in (1, 2, 3)]
    assert (run.checkpoints.newest, run.checkpoints.current) == (5, None)


def test_answers_to_another_one_and_second_answers_count_for_nothing():
    run = Run(unit("a", record(1), record(2)))
    number = run.begin()
    run.checkpoints.snapped(Snapped(1, number - 1), 1.0)
    run.checkpoints.snapped(Snapped(7, number), 1.0)
    run.snapped(1)
    run.snapped(1)
    assert run.checkpoints.current.waiting == {2}
    assert len(run.checkpoints.current.parts["a"]) == 1
    run.checkpoints.not_snapped(NotSnapped(1, number - 1, "late"), 1.0)
    assert run.checkpoints.current is not None
    assert not run.troubles


def test_one_that_leaves_in_order_is_not_waited_for_and_another_is():
    run = Run(unit("a", record(1), record(2, leaving=True)))
    run.begin()
    run.checkpoints.left(1, 1.0)
    assert run.checkpoints.current.waiting == {1, 2}
    run.checkpoints.left(2, 1.0)
    assert run.checkpoints.current.waiting == {1}
    run.snapped(1)
    assert len(run.kept) == 1
    run.checkpoints.left(2, 2.0)  # none is on
    assert len(run.kept) == 1


def test_one_through_the_middle_of_an_end_is_given_up_and_no_trouble():
    run = Run(unit("a", record(1), record(2)))
    number = run.begin()
    run.said()
    run.snapped(1, finished=True)
    run.snapped(2, finished=False)
    assert not run.kept
    assert not run.troubles
    assert run.said() == [(1, Abandon(number)), (2, Abandon(number))]
    assert run.checkpoints.current is None


@pytest.mark.parametrize(("leaving", "mixed"), [(set(), True), ({2}, False), ({1}, False)])
def test_what_leaves_may_have_finished_before_the_others(leaving, mixed):
    cut = Cut(1, 0.0, parts={"a": [Snapped(1, 1, finished=True), Snapped(2, 1)]}, leaving=leaving)
    assert cut.mixed is mixed
    assert not Cut(1, 0.0, parts={"a": [Snapped(1, 1, finished=True)], "b": [Snapped(2, 1)]}).mixed


def test_a_chain_begins_anew_with_a_base_and_ends_with_one_that_leaves_finished():
    run = Run(unit("a", record(1), record(2), record(3, leaving=True)))
    run.begin()
    run.snapped(2, piece=piece("2a", True))
    run.snapped(1, piece=piece("1a", True))
    run.snapped(3, piece=piece("3a", True), finished=True)
    assert run.checkpoints.chains == {"a": {1: [piece("1a", True)], 2: [piece("2a", True)]}}
    run.units[0].subs.pop(3)
    run.begin()
    run.snapped(1, piece=piece("1b"))
    run.snapped(2, piece=piece("2b", True))
    assert run.checkpoints.chains == {"a": {1: [piece("1a", True), piece("1b")], 2: [piece("2b", True)]}}
    run.begin()
    run.snapped(1)  # it has no state any more
    run.snapped(2, piece=piece("2c"), finished=False)
    assert run.checkpoints.chains == {"a": {2: [piece("2b", True), piece("2c")]}}


def test_what_cannot_be_kept_leaves_the_chains_of_before():
    run = Run(unit("a", record(1)), every=1.0)
    run.checkpoints.tick(run.units, 0.0)
    run.checkpoints.tick(run.units, 1.0)
    run.snapped(1, 1.0, piece=piece("a", True))
    chains = run.checkpoints.chains
    run.checkpoints.tick(run.units, 2.0)
    run.said()
    run.refuse = "the disk is full"
    run.snapped(1, 2.0, piece=piece("b"))
    assert run.checkpoints.chains == chains
    assert run.troubles == ["the disk is full"]
    assert run.said() == [(1, Abandon(2))]
    assert run.checkpoints.newest == 1
    assert run.checkpoints.last_begun == 2
    run.checkpoints.tick(run.units, 3.9)
    assert run.checkpoints.last_begun == 2  # it waits twice as long
    run.checkpoints.tick(run.units, 4.0)
    assert run.checkpoints.last_begun == 3


@given(st.integers(1, 3000), st.sampled_from([0.001, 1.0, 7.0]))
def test_however_often_one_fails_the_next_is_tried_within_bounds(failures, every):
    run = Run(unit("a", record(1)), every=every)
    run.checkpoints.tick(run.units, 0.0)
    now, last = every, 0.0
    for _ in range(min(failures, 30)):
        run.checkpoints.tick(run.units, now)
        assert run.checkpoints.current is not None
        run.checkpoints._failed = max(run.checkpoints._failed, failures - 30)
        run.checkpoints.not_snapped(NotSnapped(1, run.checkpoints.current.number, "full"), now)
        wait = run.checkpoints._due - now
        assert every < wait <= LONGEST_BACKOFF + 1e-6
        assert wait >= last - 1e-6
        last, now = wait, run.checkpoints._due


def test_one_that_takes_too_long_is_given_up_and_says_who_was_silent():
    run = Run(unit("a", record(1)), unit("b", record(12), record(3)), patience=5.0)
    run.begin(10.0)
    run.snapped(1)
    run.checkpoints.tick(run.units, 15.0)
    assert not run.troubles
    run.checkpoints.tick(run.units, 15.1)
    assert run.troubles == ["b/3, b/12 did not do its part within 5 s"]
    assert run.checkpoints.current is None


def test_one_that_was_asked_for_begins_as_soon_as_one_may_and_is_not_asked_for_again():
    one = unit("a", record(1))
    run = Run(one, last=8)
    run.checkpoints.tick(run.units, 0.0)
    assert run.checkpoints.current is None
    assert run.checkpoints.ask() == 9
    one.unsettled = True
    run.checkpoints.tick(run.units, 1.0)
    assert run.checkpoints.current is None
    one.unsettled = False
    run.checkpoints.tick(run.units, 2.0)
    run.snapped(1, 2.0)
    run.checkpoints.tick(run.units, 3.0)
    assert run.checkpoints.current is None
    run.checkpoints.ask()
    run.checkpoints.tick(run.units, 4.0)
    run.checkpoints.not_snapped(NotSnapped(1, 10, "full"), 5.0)
    run.checkpoints.tick(run.units, 6.0)
    assert run.checkpoints.current is None  # who asked was told


def test_a_unit_may_want_one():
    one = unit("a", record(1), wants_checkpoint=True)
    run = Run(one)
    run.checkpoints.tick(run.units, 0.0)
    assert run.checkpoints.current is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"moving": True},
        {"unsettled": True},
        {"finishing": True},
    ],
)
def test_none_begins_while_a_unit_is_dealt_with(fields):
    run = Run(unit("a", record(1)), unit("b", record(2), **fields))
    assert not run.checkpoints.may_begin(run.units)


def test_one_may_begin_once_all_have_begun_and_who_finishes_has_finished():
    run = Run(unit("a", record(1, finished=True), finishing=True))
    assert run.checkpoints.may_begin(run.units)
    assert not run.checkpoints.may_begin([unit("a", record(1, started_at=None))])
    run.checkpoints.held = True
    assert not run.checkpoints.may_begin(run.units)


def test_one_is_wanted_when_it_is_late_and_not_held_up_by_a_commit():
    run = Run(unit("a", record(1)), every=1.0)
    assert not run.checkpoints.wanted(5.0)  # none is due yet
    run.checkpoints.tick(run.units, 10.0)
    assert not run.checkpoints.wanted(11.0)
    assert run.checkpoints.wanted(11.0 + PUT_OFF)
    run.checkpoints.held = True
    assert not run.checkpoints.wanted(11.0 + PUT_OFF)


def test_sources_with_splits_are_told_and_the_last_one_says_that_it_is():
    begun = []
    run = Run(unit("a", record(1), splits=SimpleNamespace(checkpoint_begun=lambda: begun.append(1))))
    run.begin(last=True)
    assert begun == [1]
    assert run.said() == [(1, Checkpoint(1, True))]
    run.checkpoints.abandon()
    assert run.said() == [(1, Abandon(1))]
    run.checkpoints.abandon()  # none is on
    assert not run.said()


def test_a_change_is_held_up_by_one_that_is_on_and_by_one_that_is_late_if_none_was_complete_since():
    run = Run(unit("a", record(1)), newest=4, every=1.0)
    checkpoints = run.checkpoints
    checkpoints.tick([], 10.0)
    assert not checkpoints.holds_up(4, 11.0 + LATE - 0.1)
    assert checkpoints.holds_up(4, 11.0 + LATE)
    assert not checkpoints.holds_up(3, 11.0 + LATE)  # number 4 was complete since: the next subscale comes first
    run.begin(11.0)
    assert checkpoints.holds_up(3, 11.0)
    run.snapped(1, 12.5)  # it took 1.5 s: a change goes on for four times as long before the next one
    assert not checkpoints.holds_up(5, 12.5)
    checkpoints.tick([], 12.5)
    due = checkpoints._due
    assert not checkpoints.holds_up(5, due + PATIENT * 1.5 - 0.1)
    assert checkpoints.holds_up(5, due + PATIENT * 1.5)
    checkpoints.ask()
    assert checkpoints.holds_up(5, 11.5)
