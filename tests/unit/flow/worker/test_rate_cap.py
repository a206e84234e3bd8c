"""The token bucket: never more than the rate and what the bucket holds, never less for long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.worker.rate_cap import RateCap, changed

NOW = 1_790_000_000.0
FOREVER = NOW + 1e6


def near(at):
    """Seconds since the epoch are known to a quarter of a microsecond."""
    return pytest.approx(at, rel=0, abs=2e-6)


def worked(cap, now, done, batch):
    """What one turn does: (done afterwards)."""
    most = cap.allowed(now, done)
    return done + min(most, batch)


def test_at_first_nothing_is_allowed_before_the_first_portion_has_come():
    cap = RateCap(1000.0, FOREVER, NOW, 0)
    assert cap.allowed(NOW, 0) == 0
    assert cap.wake_at == near(NOW + 0.01)
    assert cap.allowed(cap.wake_at, 0) in (9, 10)


def test_after_a_pause_no_more_than_the_bucket_holds_comes_at_once():
    cap = RateCap(1000.0, FOREVER, NOW, 0)
    assert cap.allowed(NOW + 100, 0) == 50


def test_a_tuple_is_not_divided():
    cap = RateCap(0.5, FOREVER, NOW, 7)
    assert cap.allowed(NOW + 1.9, 7) == 0
    assert cap.wake_at == near(NOW + 2.0)
    assert cap.allowed(NOW + 2.0, 7) == 1
    assert cap.allowed(NOW + 2.0, 8) == 0
    assert cap.wake_at == near(NOW + 4.0)


def test_a_batch_that_is_larger_than_the_bucket_is_paid_for_afterwards():
    cap = RateCap(100.0, FOREVER, NOW, 0)
    assert cap.allowed(NOW + 1, 0) == 5
    assert cap.allowed(NOW + 1, 205) == 0  # 200 too many
    assert cap.allowed(NOW + 2.9, 205) == 0
    assert cap.wake_at == near(NOW + 3.01)
    assert cap.allowed(NOW + 3.025, 205) == 2


def test_it_wakes_at_its_end_at_the_latest():
    assert RateCap(0.001, NOW + 2, NOW, 0).wake_at == NOW + 2


def test_a_change_of_the_rate_keeps_what_is_in_the_bucket_and_what_is_missing_there():
    cap = RateCap(100.0, FOREVER, NOW, 0)
    cap.allowed(NOW + 1, 0)
    same = changed(cap, 10.0, 60.0, NOW + 1, 25)  # 20 too many
    assert same is cap
    assert cap.allowed(NOW + 2.9, 25) == 0
    assert cap.allowed(NOW + 3.2, 25) == 1
    assert cap.until == NOW + 61
    changed(cap, 1000.0, 60.0, NOW + 3.2, 25)
    assert cap.allowed(NOW + 4.2, 25) == 50


def test_a_change_of_the_rate_gives_no_second_bucket():
    cap = RateCap(1000.0, FOREVER, NOW, 0)
    done = worked(cap, NOW + 1, 0, 1000)
    for _ in range(10):  # as when sub-units come and go
        assert changed(cap, 1000.0, 60.0, NOW + 1, done) is cap
        assert cap.allowed(NOW + 1, done) == 0


def test_no_seconds_lift_it():
    assert changed(RateCap(1.0, FOREVER, NOW, 0), 0.0, 0.0, NOW, 0) is None
    assert changed(None, 5.0, 1.0, NOW, 3).until == NOW + 1


@given(
    st.floats(0.1, 1e6),
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 2000), st.booleans()), min_size=1, max_size=60),
)
def test_over_any_span_it_lets_pass_the_rate_and_one_bucket(rate, steps):
    cap, now, done, spans = RateCap(rate, FOREVER, NOW, 0), NOW, 0, [(NOW, 0)]
    for pause, batch, sleeps in steps:
        now = max(now + pause, cap.wake_at if sleeps else 0.0)
        before = done
        done = worked(cap, now, done, batch)
        spans.append((now, before))
    for i, (start, before) in enumerate(spans):
        for end, after in [*spans[i + 1 :], (now, done)]:
            assert after - before <= rate * (end - start) + cap.held + 1e-5 * rate + 1


@given(st.floats(0.1, 1e6), st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 0.1)), max_size=60))
def test_who_takes_too_much_pays_and_who_waits_until_it_wakes_may_go_on(rate, steps):
    cap, now, done = RateCap(rate, FOREVER, NOW, 0), NOW, 0
    for batch, late in steps:
        now = max(now, cap.wake_at) + late
        assert cap.allowed(now, done) >= 1
        done += batch  # a batch that cannot be divided
        cap.allowed(now, done)
        assert cap.wake_at <= now + (max(0, batch - cap.held) + cap.held + cap.portion) / rate + 1e-3
    # The whole was no faster than the rate, but for the last batch, which is still being paid for.
    last = steps[-1][0] if steps else 0
    assert done - last <= rate * (now - NOW) + cap.held + 1e-5 * rate + 1
