"""A sample of the keys that come."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.worker.key_load import KEPT, LONGEST_NAME, MANY, PER_PROBE, REPORTS, KeyLoadSampler
from esault.routing.ring import position


def sampled(keys):
    sampler = KeyLoadSampler()
    sampler.refill()
    sampler.sample(keys)
    return sampler


@given(st.lists(st.sampled_from(["a", "b", "ü", 1, (1, "x"), b"z"]), min_size=1, max_size=PER_PROBE))
def test_the_heaviest_keys_have_their_shares(keys):
    found = sampled(keys).summary()
    assert found.size == len(keys)
    shares = {place: share for _, place, share in found.heaviest}
    assert all(
        shares[position(key)] == pytest.approx(keys.count(key) / len(keys)) for key in keys if position(key) in shares
    )
    assert [share for _, _, share in found.heaviest] == sorted(shares.values(), reverse=True)
    assert list(found.points) == sorted(found.points) and set(found.points) <= set(map(position, keys))


def test_no_more_is_looked_at_than_there_is_room_for():
    sampler = KeyLoadSampler()
    sampler.sample(["a"])
    assert sampler.summary().size == 0
    sampler.refill()
    sampler.sample(["a"] * 1000)
    assert sampler.room == 0 and sampler.summary().size == PER_PROBE


def test_the_oldest_go():
    sampler = KeyLoadSampler()
    for key in ["old", *["new"] * (KEPT // PER_PROBE)]:
        sampler.refill()
        sampler.sample([key] * PER_PROBE)
    found = sampler.summary()
    assert found.size == KEPT and [name for name, _, _ in found.heaviest] == ["'new'"]


def test_keys_of_an_array_are_plain_and_long_ones_cut():
    name, place, share = sampled(pa.array(["x" * 500] * 3)).summary().heaviest[0]
    assert len(name) == LONGEST_NAME and place == position("x" * 500) and share == 1.0


def test_what_was_sampled_is_forgotten():
    sampler = sampled(["a"])
    assert sampler.summary().size == 1
    sampler.forget()
    assert sampler.summary().size == 0 and sampler.summary().heaviest == ()


def test_of_few_tuples_each_report_has_a_new_summary():
    sampler = sampled(["a"])
    assert sampler.summary().size == 1
    sampler.refill()
    sampler.sample(["a"])
    assert sampler.summary().size == 2


def test_of_many_every_fourth_report_has():
    sampler = KeyLoadSampler()
    for _ in range(MANY // PER_PROBE):
        sampler.refill()
        sampler.sample(["a"] * PER_PROBE)
    sizes = [sampler.summary().size]
    for _ in range(REPORTS):
        sampler.refill()
        sampler.sample(["a"])
        sizes.append(sampler.summary().size)
    assert sizes == [MANY] * REPORTS + [MANY + REPORTS]
