"""Times that all went back: one lasts until tuples flow, and a run that goes back in vain gives up."""

from __future__ import annotations

import pytest

from esault.control.checkpoints.recovery import LOADED_PER_SECOND, MOST_IN_VAIN, READY_PATIENCE, Recovery
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Piece


def completed(size):
    piece = Piece("p", True, 1, size, 0)
    return CompletedCheckpoint(
        3, "run", {"count": CompletedUnit("bolt", "key", 1, chains=((piece,),))}, (), 9, 0.0, 1.0
    )


def test_one_lasts_from_the_first_death_until_tuples_flow():
    recovery = Recovery()
    assert not recovery.all
    assert recovery.begin(4, "a died", 10.0) is None
    assert recovery.begin(3, "b died", 12.0) is None  # on the way back
    assert len(recovery.all) == 1
    one = recovery.lasting
    assert one is not None
    assert (one.at, one.number, one.why, one.seconds) == (10.0, 3, "a died; b died", None)
    recovery.flowing(15.5)
    assert recovery.lasting is None
    assert one.seconds == 5.5
    recovery.flowing(20.0)  # there is none that it would end
    assert one.seconds == 5.5
    assert recovery.begin(5, "c died", 30.0) is None
    assert [each.number for each in recovery.all] == [3, 5]


def test_a_run_that_goes_back_again_and_again_without_a_checkpoint_gives_up():
    recovery = Recovery()
    for time in range(MOST_IN_VAIN):
        assert recovery.begin(1, "a died", float(time)) is None
    why = recovery.begin(1, "b died", 9.0)
    assert why is not None
    assert why.startswith(f"{MOST_IN_VAIN} times in a row")
    assert why.endswith("none was completed since: b died")
    assert len(recovery.all) == 1


def test_a_checkpoint_makes_the_count_begin_anew_and_restarts_are_counted_elsewhere():
    recovery = Recovery()
    for time in range(MOST_IN_VAIN):
        recovery.begin(1, "a died", float(time))
    recovery.completed()
    assert recovery.in_vain == 0
    for time in range(20):
        assert recovery.begin(1, "the disk is full", float(time), counted=False) is None
    assert recovery.in_vain == 0


@pytest.mark.parametrize("size", [0, 10 * LOADED_PER_SECOND])
def test_all_have_longer_to_get_ready_the_more_state_there_is(size):
    recovery = Recovery()
    assert not recovery.late(1e9)  # none is on
    recovery.begin(3, "a died", 100.0, completed(size))
    by = 100.0 + READY_PATIENCE + size / LOADED_PER_SECOND
    assert not recovery.late(by)
    assert recovery.late(by + 0.01)
    recovery.begin(3, "b died", 105.0, completed(size))  # which has the time anew
    assert not recovery.late(by + 5.0)
    recovery.flowing(120.0)
    assert not recovery.late(1e9)
