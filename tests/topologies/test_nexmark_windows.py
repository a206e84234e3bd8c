from __future__ import annotations

import json

import pytest
from running import FOLDER, drained, real, rows, until_emitted

from bench.nexmark.answers import answer, load
from bench.nexmark.answers import rows as counted
from esault.testing import LocalRuntime
from esault.topology.locate import locate

COUNT = 20_000
#: events in a second of their own time: windows of 10 s are 20 and more
SLOW = 100.0
SINKS = {"q5": "hottest", "q7": "highest", "q8": "sellers", "q11": "sessions"}
#: the unit with a window on as many sub-units as need be
FIRST = {"q5": "count", "q7": "of-auctions", "q8": "new-sellers", "q11": "sessions"}


@pytest.fixture
def auctions(sql):
    load(sql, COUNT, per_second=SLOW)
    return sql


@pytest.mark.parametrize("query", list(SINKS))
def test_windows_give_what_a_database_gives(auctions, query):
    local = drained(f"nexmark/{query}.py", events=COUNT, per_second=SLOW, parallelism={FIRST[query]: 3})
    wanted = answer(auctions, query)
    assert counted(rows(local, SINKS[query])) == wanted
    assert wanted.total() >= 20


@pytest.mark.parametrize("query", ["q5", "q8", "q11"])
def test_windows_move_with_their_keys(auctions, query):
    topology = locate(f"{FOLDER}/nexmark/{query}.py").build({"events": COUNT, "per_second": SLOW})
    local = LocalRuntime(topology, seed=2)
    unit = FIRST[query]
    until_emitted(local, "events", COUNT // 3)
    local.split(unit, local.sub_units(unit)[0])
    local.run_until_drained()
    assert [change.moved_keys > 0 for change in local.report().changes] == [True]
    assert counted(rows(local, SINKS[query])) == answer(auctions, query)


#: a thousand events, ten seconds, at a time; at a rate, since watermarks are sent as time passes
MIXED = {"events": 5000, "per_second": SLOW, "disorder": 1000, "rate": 20_000.0}


@pytest.mark.slow
def test_events_out_of_order_are_in_their_sessions_within_the_lateness(sql):
    load(sql, 5000, per_second=SLOW)
    local = drained("nexmark/q11.py", **MIXED, lateness=10.0)
    assert counted(rows(local, "sessions")) == answer(sql, "q11")
    assert not rows(local, "late")


@pytest.mark.slow
def test_events_beyond_the_lateness_land_in_the_late_stream_and_none_is_lost():
    local = drained("nexmark/q11.py", **MIXED, lateness=1.0, gap=2.0)
    late = len(rows(local, "late"))
    assert late > 100
    assert sum(bids for _, (bids, _, _) in rows(local, "sessions")) + late == 5000 * 46 // 50
    assert local.report().units["sessions"].late == late


@pytest.mark.slow
def test_query_5_on_real_processes(auctions, tmp_path):
    real(tmp_path, "nexmark/q5.py", "--parallelism", "count=2", events=COUNT, per_second=SLOW)
    lines = [json.loads(line) for line in (tmp_path / "out/nexmark/q5.jsonl").read_text().splitlines()]
    assert counted((line["key"], line["value"]) for line in lines) == answer(auctions, "q5")
