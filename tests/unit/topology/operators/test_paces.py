"""When the tuples of a key go on: throttle, debounce and batches, compared with what they promise of all times."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.topology.operators.distinct import LATE
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


@given(times, st.integers(1, 3), st.integers(1, 8), st.integers(0, 12))
@example(times=[5, 30, 6], count=1, seconds=4, behind=0)
def test_a_throttle_lets_no_more_through_however_late_they_come(times, count, seconds, behind):
    bolt = recorded(Throttle, count, seconds, float)
    newest = float("-inf")
    for time in times:
        newest = max(newest, time)
        bolt.clock = newest - behind
        before = bolt.values()
        bolt.come(time)
        near = sum(abs(time - other) < seconds for other in before)
        to = LATE if time < bolt.clock - seconds else THROTTLED if near >= count else None
        assert bolt.out[-1] == (time, to)
    through = bolt.values()
    assert all(sum(start <= time < start + seconds for time in through) <= count for start in through)


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


@given(times, st.integers(1, 8), st.integers(0, 12))
@example(times=[5, 12, 40, 6], seconds=10, behind=0)
def test_a_debounce_by_event_time_emits_none_of_which_it_knew_what_followed(times, seconds, behind):
    bolt = recorded(DebounceByEvent, seconds, lambda value: value[0])
    newest, seen = float("-inf"), []
    for number, time in enumerate([*times, None]):
        if time is not None:
            newest = max(newest, time)
        before = len(bolt.out)
        bolt.pass_(newest - behind if time is not None else 100)
        for (emitted, _), to in bolt.out[before:]:
            assert to is None and not any(emitted < other < emitted + seconds for other in seen)
        if time is None:
            continue
        bolt.come((time, number))
        if time < bolt.clock - seconds:
            assert bolt.out[-1] == ((time, number), LATE)
        else:
            seen.append(time)
    assert not bolt.pending


def test_a_late_tuple_alone_leaves_no_state_of_its_key():
    cleared = []

    class Cleared(DebounceByEvent):
        def clear_state(self):
            cleared.append(self.key)

        def emit(self, key, value, stream=None):
            pass

    bolt = Cleared(5, float)
    bolt.key, bolt.context = "k", SimpleNamespace(watermark=lambda key: 20)
    bolt.process("k", 14)
    assert cleared == ["k"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (1.0, 1),
        (0.0, -0.0),
        (-0.0, 0),
        (True, 1),
        (Decimal(1), 1),
        (1.5, Decimal("1.5")),
        (Fraction(3, 2), 1.5),
    ],
)
def test_of_one_time_the_last_goes_on_however_it_is_written(one, two):
    bolt = recorded(DebounceByEvent, 5.0, lambda value: value[0])
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
