"""A budget as it is written: sub-units, or money an hour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.budget import Budget
from esault.errors import UsageError


@pytest.mark.parametrize(
    ("written", "meant", "said"),
    [
        ("8", Budget(8), "8"),
        (8, Budget(8), "8"),
        ("3.50/h", Budget(hourly=3.5), "3.5/h"),
        (" 2 / h ", Budget(hourly=2.0), "2/h"),
    ],
)
def test_a_number_is_sub_units_and_with_an_hour_it_is_money(written, meant, said):
    assert (Budget.parse(written), str(Budget.parse(written))) == (meant, said)


@pytest.mark.parametrize("written", ["", "0", "0/h", "3.5", "-1", "-1/h", "much", "3/d", "1e3", "8 sub-units", True])
def test_anything_else_is_refused_with_both_forms(written):
    with pytest.raises(UsageError, match="such as 8, or the most money an hour, such as 3.50/h"):
        Budget.parse(written)


@given(st.integers(1, 10_000), st.sampled_from([0.01, 0.03, 0.1, 0.7, 2.5]))
def test_what_n_slots_cost_buys_n_of_them(n, price):
    assert Budget(hourly=n * price).bought(price) == n
    assert Budget(n).bought(price) == n
