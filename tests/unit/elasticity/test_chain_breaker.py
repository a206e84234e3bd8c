"""When a chained bolt is better off in processes of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.chain_breaker import GAIN, PASSING, ChainBreaker, ChainedLoad, ChainLoad

NAMES = ("a", "b", "c")


def loads(shares, rate, busy=None, cpu=1.0, seconds=2.0, width=1):
    """Looks every quarter of a second at a chain whose bolts take these shares of a sub-unit's time; `busy`: all of it."""
    busy = sum(shares) if busy is None else busy
    for i in range(int(4 * seconds) + 1):
        at = i / 4
        bolts = tuple(
            ChainedLoad(name, share * at * width, int(rate * at * width), frozenset(NAMES[j : len(shares)]))
            for j, (name, share) in enumerate(zip(NAMES, shares))
        )
        yield ChainLoad(100.0 + at, width, busy * at * width, None if cpu is None else cpu * busy * at * width, bolts)


def found(shares, rate, spare, **more):
    breaker = ChainBreaker()
    answers = [breaker.look(load, spare) for load in loads(shares, rate, **more)]
    return next((answer[0] for answer in answers if answer), None)


@pytest.mark.parametrize(
    ("shares", "rate", "spare", "more", "bolt"),
    [
        ((0.05, 0.9), 1_000, 1.0, {}, "b"),  # one that takes long has a core to go to
        ((0.9, 0.05), 1_000, 1.0, {"busy": 1.0}, "a"),  # and takes what is behind it along
        ((0.05, 0.9), 1_000, 0.1, {}, None),  # or has none
        ((0.05, 0.9), 1_000, 0.0, {"cpu": 0.02}, "b"),  # but needs none, since it waits
        ((0.05, 0.9), 1_000, 0.0, {"cpu": None}, None),
        ((0.02, 0.02, 0.02), 1_000, 4.0, {"busy": 0.98}, None),  # it is the unit itself that has too much to do
        ((0.1, 0.1, 0.3), 700_000, 1.0, {"busy": 1.0}, None),  # small bolts: to pass rows on would cost more
        ((0.1, 0.4), 1_000, 4.0, {}, None),  # it is not full
        ((0.05, 0.9), 1_000, 0.5, {"width": 3}, None),  # three sub-units share one core more
        ((0.05, 0.9), 1_000, 3.0, {"width": 3}, "b"),
    ],
)
def test_it_goes_where_that_brings_more(shares, rate, spare, more, bolt):
    assert found(shares, rate, spare, **more) == bolt


def test_nothing_is_said_before_a_window_is_over_or_after_a_change():
    breaker = ChainBreaker()
    wide = list(loads((0.05, 0.9), 1_000))
    assert [breaker.look(each, 1.0) is None for each in wide[:5]] == [True, True, True, True, False]
    assert breaker.look(ChainLoad(102.0, 2, 9.0, 9.0, wide[5].bolts), 1.0) is None


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3),
    own=st.floats(0.0, 1.0),
    rate=st.floats(1, 2e6),
    spare=st.floats(0.0, 8.0),
)
def test_it_never_goes_where_the_cores_cannot_bear_it(shares, own, rate, spare):
    whole = sum(shares) + own
    shares = [each / whole for each in shares] if whole > 0 else shares
    busy = 1.0 if whole > 0 else 0.0
    bolt = found(shares, rate, spare, busy=busy)
    if bolt is not None:
        i = NAMES.index(bolt)
        # All the work, and what passing on costs, fits into the cores that there are, GAIN times over; so does what stays into one.
        assert busy + PASSING * rate <= (1 + spare) / GAIN * 1.01
        assert busy - sum(shares[i:]) <= 1 / GAIN * 1.01
