from __future__ import annotations

import json

import pytest
from running import drained, real, rows

from bench.nexmark.answers import answer, load
from bench.nexmark.answers import rows as counted

COUNT = 20_000


@pytest.fixture
def auctions(sql):
    """The first events, at ten thousand a second."""
    load(sql, COUNT)
    return sql


def test_query_1_prices_in_euros(auctions):
    local = drained("nexmark/q1.py", events=COUNT)
    assert counted(rows(local, "prices")) == answer(auctions, "q1")


def test_query_2_bids_on_some_auctions(auctions):
    local = drained("nexmark/q2.py", events=COUNT, parallelism={"events": 3})
    wanted = answer(auctions, "q2")
    assert counted(rows(local, "bids")) == wanted
    assert wanted.total() > 50


@pytest.mark.parametrize("seed", [1, 2])
def test_query_3_sellers_of_some_states(auctions, seed):
    local = drained("nexmark/q3.py", events=COUNT, parallelism={"events": 2, "sellers": 3}, seed=seed)
    wanted = answer(auctions, "q3")
    assert counted(rows(local, "sellers")) == wanted
    assert wanted.total() > 50


def test_broken_events_land_as_dead_letters_and_the_rest_is_right(sql):
    load(sql, COUNT, malformed=0.01)
    local = drained("nexmark/q1.py", events=COUNT, malformed=0.01)
    assert counted(rows(local, "prices")) == answer(sql, "q1")
    good = sql.execute("SELECT count(*) FROM bid").fetchone()[0]
    broken = COUNT * 46 // 50 - good
    assert len(local.dead_letters) == broken > 100
    assert "IndexError" in json.dumps(local.dead_letters[0], default=str)


@pytest.mark.slow
def test_query_3_on_real_processes(auctions, tmp_path):
    real(tmp_path, "nexmark/q3.py", "--parallelism", "sellers=2", "--checkpoint", "0.5", events=COUNT)
    lines = [json.loads(line) for line in (tmp_path / "out/nexmark/q3.jsonl").read_text().splitlines()]
    assert counted((line["key"], line["value"]) for line in lines) == answer(auctions, "q3")
