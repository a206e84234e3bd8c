from __future__ import annotations

import pytest


@pytest.fixture
def answered():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as sql:
        from bench.nexmark.answers import load

        load(sql, 5000)
        yield sql


def test_a_row_that_is_wrong_or_missing_is_named(answered, tmp_path):
    import json

    from bench.nexmark.answers import answer
    from bench.nexmark.run import compared

    right = list(answer(answered, "q2").elements())
    out = tmp_path / "rows"
    out.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in right))
    assert compared("q2", 5000, out) == (len(right), None)
    key, value = right[0]
    changed = [(key, value + 1), *right[1:]]
    out.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in changed))
    count, wrong = compared("q2", 5000, out)
    assert wrong == f"1 rows of {count} are missing and 1 are too many, such as {(key, value)}"
