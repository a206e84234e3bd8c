"""Which share of the tuples comes to whom."""

from __future__ import annotations

import pytest

from esault.elasticity.load_share import PRIOR, load_shares


def test_many_tuples_decide():
    shares = load_shares({1: 30_000.0, 2: 10_000.0}, {1: 50, 2: 50})
    assert shares == {1: pytest.approx(0.75, abs=0.001), 2: pytest.approx(0.25, abs=0.001)}


def test_without_any_the_ring_decides_and_few_are_believed_by_half():
    assert load_shares({1: 0.0, 2: 0.0}, {1: 30, 2: 10}) == {1: 0.75, 2: 0.25}
    assert load_shares({1: PRIOR}, {1: 50, 2: 50}) == {1: 0.75, 2: 0.25}


def test_shares_are_one_together_and_nobody_has_none():
    assert load_shares({}, {}) == {}
    shares = load_shares({7: 1e9}, {7: 1, 8: 1, 9: 2})
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) > 0
