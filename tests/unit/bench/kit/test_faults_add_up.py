"""Faults of several runs in one file: counts by kind, what was lost, and recovery over all of them."""

from __future__ import annotations

import json

from bench.faults.__main__ import _add
from bench.faults.count import BAD, each_once
from bench.faults.topology import EACH, KEYS
from bench.kit.runs import Runs


def result(faults, seconds, again=(), **wrong):
    kinds = {"kill the keeper": {"injected": faults, "seconds": seconds, "seconds_of_another_command": again}}
    return {"faults": faults, "commands": 2, "numbers": 1000, "by_kind": kinds, **dict.fromkeys(BAD, 0), **wrong}


def test_runs_of_faults_add_up(tmp_path):
    folder = str(tmp_path / "total")
    first = Runs(folder, "faults")
    _add(
        first,
        first.next_seed,
        [("with checkpoints", result(4, [0.25, 0.25, 0.5])), ("at least once", result(2, [0.1]))],
        1.5,
    )
    second = Runs(folder, "faults")
    _add(second, second.next_seed, [("of random programs on 3 hosts", result(6, [3.0], [4.0], rows_doubled=1))], 60.0)
    lines = (tmp_path / "total" / "result.txt").read_text().splitlines()
    assert lines[0].startswith(
        "12 faults in 2 runs, checkpoints every 0.25 s: 6 of random programs on 3 hosts, 4 with checkpoints, 2 at least once; 3,000 tuples, "
        "6 commands"
    )
    assert "  rows doubled: 1" in lines
    assert "  tuples lost: 0" in lines
    assert "  recovery, from the fault until tuples flow: p50 0.25 s, p99 3.00 s, max 3.00 s" in lines
    again = (
        "  where the run had ended, until another command that goes on with it runs: p50 4.00 s, p99 4.00 s, max 4.00 s"
    )
    assert again in lines
    assert "      12  kill the keeper" in lines
    assert "    2: 1 rows_doubled" in lines
    assert [run["failures"] for run in Runs(folder, "faults").all] == [{}, {"2": "1 rows_doubled"}]


def test_all_that_must_be_0_is_counted_for_the_four_units(tmp_path):
    n, rows = 2 * EACH, []
    for key in range(KEYS):
        rows += [(f"k{key}", {"n": m}) for m in (EACH, 2 * EACH)]
        rows.append((f"k{key}", {"n": n, "sum": sum(3 * i for i in range(key, EACH * KEYS, KEYS))}))
    (tmp_path / "out.jsonl").write_text("\n".join(json.dumps({"key": k, "value": v}) for k, v in rows))
    counted = each_once(tmp_path, EACH * KEYS)
    assert {name for name in BAD if name in counted} == {*BAD} - {"rows_late"}, "it has no windows"
    assert not any(counted.get(name) for name in BAD)
    (tmp_path / "out.jsonl").write_text("\n".join(json.dumps({"key": k, "value": v}) for k, v in rows[1:]))
    assert each_once(tmp_path, EACH * KEYS)["rows_lost"] == 1
