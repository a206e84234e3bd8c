"""Ids of rows: the parent's, and the ordinal of the emit, however they are given."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.errors import PayloadError
from esault.flow.operators.emitter import AGAIN, WATCHED, Emitter
from esault.payload.codec import Codec


def emitter(streams=(), watch=False):
    return Emitter("u", streams, 0, watch, Codec())


COUNTS = st.lists(st.integers(0, 4), max_size=20)


@given(COUNTS, st.integers(0, 3))
@example([1, 1, 1], 0)
@example([0, 2], 0)  # as many rows as tuples, and not one of each
@example([2000], 0)
def test_ids_of_a_batch_are_those_that_each_tuple_would_have_alone(counts, before):
    one_by_one, marked, batch = emitter(), emitter(), emitter()
    parents = [f"7:{i}" for i in range(len(counts))]
    for each in (one_by_one, marked, batch):
        for _ in range(before):
            each.function()(None, "before", 0)
        each.name([0], "first")
    name, ends = one_by_one.namer(), []
    for parent, count in zip(parents, counts):
        marks = marked.marks()
        for i in range(count):
            for each in (one_by_one, marked, batch):
                each.function()(None, "k", i)
        name(parent)
        marked.name(marks, parent)
        ends.append(len(batch.only_column))
    batch.name_each(parents, ends)
    expected = [f"{parent}.{i}" for parent, count in zip(parents, counts) for i in range(count)]
    assert batch.outs[""].ids[before:] == one_by_one.outs[""].ids[before:] == marked.outs[""].ids[before:] == expected


def test_each_stream_has_ordinals_of_its_own():
    made = emitter(("late",))
    assert made.only_column is None
    emit, name = made.function(), made.namer()
    for parent in ("1:0", "1:1"):
        emit(None, "k", 1)
        emit(None, "k", 2, "late")
        emit(None, "k", 3, "late")
        name(parent)
    assert made.outs[""].ids == ["1:0.0", "1:1.0"]
    assert made.outs["late"].ids == ["1:0.late-0", "1:0.late-1", "1:1.late-0", "1:1.late-1"]


@given(st.lists(st.integers(0, 70), min_size=1, max_size=12), st.data())
@example([1] * WATCHED, None)
def test_a_value_that_changes_while_it_is_one_of_the_last_is_found_within_few_turns(turns, data):
    """However many tuples came in the turns before, and whichever of the last values it is."""
    watched = emitter(watch=True)
    values = []
    for count in turns:
        for _ in range(count):
            values.append({"n": len(values), "deep": [[1]]})
            watched.check("k", values[-1])
        watched.check_unchanged()
    last = values[-WATCHED:]
    if not last:
        return
    chosen = last[0] if data is None else data.draw(st.sampled_from(last))
    chosen["deep"][0].append(2)
    with pytest.raises(PayloadError, match="unit 'u' changed a value of type dict after it had emitted it for key 'k'"):
        for _ in range(WATCHED // AGAIN):
            watched.check_unchanged()


def test_a_turn_with_one_tuple_looks_at_few_values():
    looked = []

    class Counting(Codec):
        def pack_value(self, value, owner=None):
            looked.append(value)
            return super().pack_value(value, owner)

    watched = Emitter("u", (), 0, True, Counting())
    for i in range(200):
        watched.check("k", {"n": i})
        watched.check_unchanged()
    looked.clear()
    watched.check("k", {"n": 200})
    watched.check_unchanged()
    assert len(looked) == 2 + 2 * AGAIN
