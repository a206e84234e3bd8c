"""Random streams out of order come to what DuckDB and a plain loop say, whatever befalls them; `differential` says how, and runs more."""

from __future__ import annotations

import random
from collections import Counter

import depth
import pytest

from tests.programs.database import QUERIES, answers
from tests.programs.differential import attempt, differences, many
from tests.programs.plain import answer
from tests.programs.streams import LATE, OPERATORS, draw


def test_random_streams_come_to_what_duckdb_and_a_plain_loop_say_whatever_befalls_them():
    first = random.randrange(10**9)
    count = len(depth.seeds(200 if depth.PROFILE == "deep" else 100))
    counts, failures = many(range(first, first + count))
    assert not failures, "\n".join(
        f"python -m tests.programs.differential --only {seed}: {why}" for seed, why in failures
    )
    if count >= 200:
        happened = ("moved keys", "kills", "restores", "resumes", "checkpoints", "late tuples", "asked DuckDB")
        assert all(counts[name] for name in happened), counts


@pytest.mark.parametrize(
    "seed",
    [
        2000392,  # a checkpoint right behind a move had forgotten which windows of the moved keys had closed
        2000380,  # Havana, where midnight is there twice
    ],
)
def test_streams_that_found_something(seed):
    _, failures = attempt([seed])
    assert not failures, failures


def test_a_seed_says_all_of_a_stream():
    for seed in range(20):
        assert str(draw(seed)) == str(draw(seed)) and draw(seed).spouts == draw(seed).spouts


def test_duckdb_and_the_plain_loop_agree_where_no_engine_ran():
    """Of every operator there are some; what is asked of both is not empty."""
    programs = {seed: draw(seed) for seed in range(300)}
    asked = answers(programs, {})
    rows: Counter[str] = Counter()
    for seed, want in asked.items():
        program = programs[seed]
        got = {sink: found for sink, found in answer(program).items() if sink != "late"}
        for sink in {*got, *want}:
            assert not differences(want.get(sink, []), got.get(sink, [])), program
            rows[program.shape] += len(want.get(sink, []))
    assert all(rows[operator] for operator in QUERIES)
    assert {*QUERIES} | {*LATE} == {*OPERATORS}


def test_a_difference_is_told():
    assert differences([("a", (1, 2.0))], [("a", (1.0, 2))]) == ""
    assert "1 missing, 1 too many of 1" in differences([("a", (1, 2))], [("a", (1, 3))])
    assert "0 missing, 1 too many" in differences([("a", 1)], [("a", 1), ("a", 1)])
