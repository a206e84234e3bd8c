"""Micro-batches through pipelines: what is changed and released, in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import UsageError
from esault.control.run.pipelines import Do, Pipelines, Slice
from esault.elasticity.policies.orientstream.configuration import Configuration


def of(n):
    return Configuration((("count", n),))


def wanted(rate):
    """Sized for 1000 tuples a second by each sub-unit."""
    return of(max(1, round(rate / 1000)))


def slices(*rates):
    return [Slice(i, float(rate)) for i, rate in enumerate(rates)]


def test_a_window_goes_through():
    pipelines = Pipelines(wanted, 1500, 300)
    assert pipelines.advance(of(2), False, False) == Do()
    assert pipelines.close(slices(2000, 8000, 8000, 2000, 4000), of(2)) == 0
    # The configuration in force first: nothing is to be changed.
    assert pipelines.advance(of(2), False, False) == Do(release=(0, (0, 3)))
    assert pipelines.advance(of(2), False, True) == Do()
    assert pipelines.advance(of(2), False, False) == Do(rescale=(("count", 8),))
    assert pipelines.advance(of(2), True, False) == Do()
    assert pipelines.advance(of(8), False, False) == Do(release=(0, (1, 2)))
    assert pipelines.advance(of(8), False, False) == Do(rescale=(("count", 4),))
    assert pipelines.advance(of(4), False, False) == Do(release=(0, (4,)))
    assert pipelines.busy
    assert pipelines.advance(of(4), False, False) == Do(ended=0)
    assert not pipelines.busy
    assert pipelines.missed == 0


def test_the_next_window_begins_with_what_the_last_one_ends_with():
    pipelines = Pipelines(wanted, 1500, 300)
    pipelines.close(slices(2000, 8000), of(2))
    pipelines.close(slices(2000, 8000), of(2))
    assert [c.parallelism for g in pipelines.groupings for c, _ in g.pipelines] == [2, 8, 8, 2]


def test_a_change_that_does_not_come_about_holds_nothing_up():
    pipelines = Pipelines(wanted, 1500, 300)
    pipelines.close(slices(8000), of(2))
    assert pipelines.advance(of(2), False, False).rescale == (("count", 8),)
    assert pipelines.advance(of(2), False, False) == Do(release=(0, (0,)))  # refused, or cut to what there is
    assert pipelines.missed == 1


def test_where_nothing_is_wanted_all_stays():
    pipelines = Pipelines(lambda rate: None, 1500, 300)
    pipelines.close(slices(2000, 8000), of(2))
    assert pipelines.advance(of(2), False, False) == Do(release=(0, (0, 1)))


def test_several_units_are_changed_at_once():
    both = Configuration((("split", 2), ("count", 4)))
    pipelines = Pipelines(lambda rate: both, 1500, 300)
    pipelines.close(slices(1), Configuration((("split", 1), ("count", 1))))
    now = Configuration((("split", 1), ("count", 1)))
    assert pipelines.advance(now, False, False).rescale == (("split", 2), ("count", 4))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Pipelines(wanted, 1500, 0), "change of 0 ms"),
        (lambda: Pipelines(wanted, 1500, 300, load=1.0), "load 1"),
        (lambda: Pipelines(wanted, 1500, 300).close([], of(1)), "without slices"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(UsageError, match=says):
        make()


@given(
    st.lists(st.lists(st.sampled_from([1000, 2000, 4000, 8000]), min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from([300, 900, 1500, 6000]),
    st.booleans(),
    st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_every_slice_is_released_once_and_nothing_changes_while_tuples_are_open(windows, window_ms, always, obeyed):
    pipelines = Pipelines(wanted, window_ms, 300, always=always)
    current, fates, released, ended = of(1), iter(obeyed * 50), [], []
    for rates in windows:
        pipelines.close(slices(*rates), current)
    while pipelines.busy:
        do = pipelines.advance(current, False, False)
        if do.rescale and next(fates):
            current = Configuration(do.rescale)
        if do.release:
            released += [(do.release[0], n) for n in do.release[1]]
            held = pipelines.advance(current, False, True)
            assert held == Do()
        if do.ended is not None:
            ended.append(do.ended)
    assert sorted(released) == [(w, i) for w, rates in enumerate(windows) for i in range(len(rates))]
    assert [w for w, _ in released] == sorted(w for w, _ in released)
    assert ended == list(range(len(windows)))
