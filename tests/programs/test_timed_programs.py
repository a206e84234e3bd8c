"""Joins by time and patterns do what a plain loop does, whatever befalls them; `timed` says how, and runs more of them."""

from __future__ import annotations

import random

import depth

from tests.programs.timed import draw, many, run


def test_random_joins_do_what_a_plain_loop_does_whatever_befalls_them():
    first = random.randrange(10**9)
    count = len(depth.seeds(800))
    counts, failures = many(range(first, first + count))
    assert not failures, "\n".join(f"python -m tests.programs.timed --only {seed}: {why}" for seed, why in failures)
    if count >= 200:
        happened = (
            "within",
            "as_of",
            "tables",
            "window",
            "pattern",
            "panes",
            "ordered",
            "clock",
            "moved keys",
            "kills",
            "restores",
            "checkpoints",
        )
        assert all(counts[name] for name in happened), counts


def test_a_seed_says_all_of_a_program():
    for seed in range(20):
        assert str(draw(seed)) == str(draw(seed)) and draw(seed).spouts == draw(seed).spouts


def test_rows_of_one_time_are_paired_in_the_order_in_which_they_came():
    run(1000012)
    run(1000135)
