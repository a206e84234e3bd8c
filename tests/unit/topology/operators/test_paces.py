"""When the tuples of a key go on: throttle, debounce and batches, compared with what they promise of all times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.topology.operators.paces import THROTTLED, Batches, Debounce, DebounceByEvent, Throttle
from tests.unit.topology.operators.recorded import recorded

times = st.lists(st.integers(0, 30), max_size=20)


@given(times, st.integers(1, 3), st.integers(1, 8))
def test_a_throttle_lets_no_more_through_in_any_seconds(times, count, seconds):
    bolt = recorded(Throttle, count, seconds, float).come(*times)
    through = bolt.values()
    assert sorted([*through, *bolt.values(THROTTLED)]) == sorted(times)
    for start in through:
        assert sum(start <= time < start + seconds for time in through) <= count


@given(times, st.integers(1, 3), st.integers(1, 8))
def test_a_throttle_in_order_takes_the_first_that_it_may(times, count, seconds):
    bolt = recorded(Throttle, count, seconds, None)
    through: list = []
    for time in sorted(times):
        bolt.clock = time
        bolt.come(time)
        if sum(time - seconds < before for before in through) < count:
            through.append(time)
    assert bolt.values() == through


def test_a_throttle_forgets_what_counts_no_more():
    bolt = recorded(Throttle, 2, 1.0, None)
    for at in range(100):
        bolt.clock = float(at)
        bolt.come(at)
    assert bolt.values() == list(range(100)) and len(bolt.times) <= 2


@given(times, st.integers(1, 8))
def test_a_debounce_emits_what_nothing_followed_within_its_seconds(times, seconds):
    bolt = recorded(Debounce, seconds)
    times.sort()
    for number, at in enumerate(times):
        bolt.pass_(at)
        bolt.come(number)
    bolt.finish()
    bolt.finish()
    last = [n for n, at in enumerate(times) if n + 1 == len(times) or times[n + 1] >= at + seconds]
    assert bolt.values() == last


@given(times, st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_debounce_by_event_time_does_not_depend_on_the_order(times, order, seconds):
    order.shuffle(times)
    bolt = recorded(DebounceByEvent, seconds, lambda value: value[0])
    bolt.come(*[(time, number) for number, time in enumerate(times)]).pass_(100)
    latest = {time: number for number, time in enumerate(times)}
    quiet = [time for time in latest if not any(time < other < time + seconds for other in latest)]
    assert bolt.values() == [(time, latest[time]) for time in sorted(quiet)]
    assert not bolt.pending


@pytest.mark.parametrize(("one", "two"), [(1, 1.0), (1.0, 1), (0.0, -0.0), (-0.0, 0), (True, 1)])
def test_of_one_time_the_last_goes_on_however_it_is_written(one, two):
    bolt = recorded(DebounceByEvent, 5, lambda value: value[0])
    bolt.come((one, "first"), (two, "last")).pass_(100)
    assert [value[1] for value in bolt.values()] == ["last"]


@given(times, st.integers(1, 4), st.none() | st.integers(1, 8))
def test_batches_hold_all_in_order_and_no_more_than_asked_for(times, count, seconds):
    bolt = recorded(Batches, count, seconds)
    times.sort()
    rows = [(at, number) for number, at in enumerate(times)]
    for row in rows:
        bolt.pass_(row[0])
        bolt.come(row)
    bolt.finish()
    found = bolt.values()
    assert [row for batch in found for row in batch] == rows
    for batch, after in zip(found, [*found[1:], None]):
        assert 0 < len(batch) <= count
        if seconds is not None:
            assert batch[-1][0] < batch[0][0] + seconds
        if after is not None and len(batch) < count:
            assert seconds is not None and after[0][0] >= batch[0][0] + seconds


@pytest.mark.parametrize(
    ("make", "come"),
    [
        (lambda: recorded(Throttle, 1, 5.0, None), lambda b: b.come("x")),
        (lambda: recorded(Debounce, 5.0), lambda b: b.come(None)),
        (lambda: recorded(DebounceByEvent, 5.0, float), lambda b: b.come(3)),
        (lambda: recorded(Batches, 3, None), lambda b: b.come(None, 2)),
    ],
)
def test_state_goes_to_another_object(make, come):
    one, two = make(), make()
    one.clock = two.clock = 0.0
    come(one)
    two.__setstate__(one.__getstate__())
    assert two.__getstate__() == one.__getstate__() != make().__getstate__()
