"""Timers: what is due comes in its order, whatever is added and taken out while it is drained."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.flow.watermark.timers import Timers


def test_the_last_may_be_taken_out_by_another_reader_while_it_is_seen_to():
    timers = Timers()
    timers.add(1.0, "a")
    taken = []
    for each in timers.drain(5.0):
        taken.append(each)
        assert timers.next(5.0) is None  # it looks, and clears away the time at which nothing is due any more
    assert taken == [(1.0, "a")] and not len(timers)


dues = st.integers(0, 4).map(float)
names = st.sampled_from("abcdef")
deeds = st.one_of(
    st.tuples(st.just("add"), dues, names),
    st.tuples(st.just("remove"), dues, names),
    st.tuples(st.just("next"), dues, st.just("")),
    st.tuples(st.just("pop"), dues, st.just("")),
)


@pytest.mark.parametrize("how", ["when added", "by key"])
@example([(0.0, "a"), (0.0, "b")], [[("add", 0.0, "a")]])
@given(st.lists(st.tuples(dues, names), max_size=8), st.lists(st.lists(deeds, max_size=3), max_size=12))
def test_a_drain_gives_what_is_due_first_whatever_others_do_meanwhile(how, first, deeds_between):
    timers, model = Timers(), {}
    timers.ordered = how == "by key"

    def due_first(until):
        found = [due for due, waiting in model.items() if waiting and due <= until]
        if not found:
            return None
        waiting = model[min(found)]
        return min(found), min(waiting) if timers.ordered else next(iter(waiting))

    def take(due, name):
        del model[due][name]
        return due, name

    def do(deed, due, name):
        if deed == "add":
            timers.add(due, name)
            model.setdefault(due, {})[name] = None
        elif deed == "remove":
            timers.remove(due, name)
            model.get(due, {}).pop(name, None)
        elif deed == "next":
            assert timers.next(due) == due_first(due)
        else:
            expected = due_first(due)
            assert timers.pop(due) == (None if expected is None else take(*expected))

    for due, name in first:
        do("add", due, name)
    between = iter(deeds_between)
    for each in timers.drain(3.0):
        assert each == due_first(3.0)
        take(*each)
        for deed in next(between, ()):
            do(*deed)
    assert due_first(3.0) is None
    assert len(timers) == sum(map(len, model.values()))
