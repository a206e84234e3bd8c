from __future__ import annotations

import pytest


@pytest.mark.parametrize("limit", [3.0, 97.0, 130.0, 350.0])
def test_bisection_ends_just_below_what_is_not_sustained(limit):
    from bench.nexmark import bisect

    asked = []

    def sustains(rate):
        asked.append(rate)
        return rate <= limit

    found = bisect(sustains, 0.0, 100.0)
    assert found <= limit
    assert found >= min(0.94 * limit, limit - 0.05 * 100)
    assert len(asked) < 12


def test_a_rate_that_never_fails_is_not_sought_for_ever():
    from bench.nexmark import bisect

    assert bisect(lambda rate: True, 0.0, 100.0) == 400.0


@pytest.fixture
def answered():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as sql:
        from bench.nexmark_answers import load

        load(sql, 5000)
        yield sql


def test_a_row_that_is_wrong_or_missing_is_named(answered, tmp_path):
    import json

    from bench.nexmark_answers import answer
    from bench.nexmark_run import compared

    right = list(answer(answered, "q2").elements())
    out = tmp_path / "rows"
    out.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in right))
    assert compared("q2", 5000, out) == (len(right), None)
    key, value = right[0]
    changed = [(key, value + 1), *right[1:]]
    out.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in changed))
    count, wrong = compared("q2", 5000, out)
    assert wrong == f"1 rows of {count} are missing and 1 are too many, such as {(key, value)}"
