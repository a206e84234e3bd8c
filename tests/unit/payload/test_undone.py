"""Records that were undone: written behind a checkpoint that all went back to, before they did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.payload.undone import Undone, restore_note

record = st.fixed_dictionaries(
    {
        "run": st.sampled_from("ab"),
        "lineage": st.sampled_from("xy"),
        "epoch": st.integers(1, 4),
        "checkpoint": st.integers(0, 4),
        "time": st.integers(0, 5).map(float),
    }
)
note = st.builds(
    restore_note,
    st.sampled_from("ab"),
    st.sampled_from("xy"),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 5).map(float),
)


def written(run="a", lineage="x", epoch=1, checkpoint=3, time=10.0):
    return {"run": run, "lineage": lineage, "epoch": epoch, "checkpoint": checkpoint, "time": time}


def after(*notes):
    found = Undone()
    assert all(found.note(each) for each in notes)
    return found


def test_what_came_behind_the_checkpoint_is_undone():
    undone = after(restore_note("a", "x", 2, 3, 20.0))
    assert written(checkpoint=3) in undone and written(checkpoint=4) in undone
    assert written(checkpoint=2) not in undone


def test_what_is_written_after_going_back_stays():
    undone = after(restore_note("a", "x", 2, 3, 20.0))
    assert written(epoch=2) not in undone and written(epoch=3, time=1.0) not in undone


def test_of_another_run_the_clock_decides():
    undone = after(restore_note("b", "x", 1, 3, 20.0))
    assert written(time=19.0) in undone and written(time=20.0) in undone and written(time=21.0) not in undone


def test_another_lineage_goes_its_own_way():
    assert written(lineage="y") not in after(restore_note("a", "x", 2, 0, 20.0))


def test_records_without_a_checkpoint_and_other_things_are_never_undone():
    undone = after(restore_note("a", "x", 2, 0, 20.0))
    for each in ({}, {"lineage": "x"}, {"checkpoint": "3", "lineage": "x"}, None, 7, "text", [written()]):
        assert each not in undone


def test_a_record_is_no_note():
    found = Undone()
    assert not found.note(written()) and not found.note({})
    assert written() not in found


@given(st.lists(note, max_size=4), record, note)
def test_one_more_note_brings_nothing_back(notes, record, more):
    if record in after(*notes):
        assert record in after(*notes, more) and record in after(more, *reversed(notes))
