"""What a report says, in words, as JSON and in a notebook."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.report import (
    BudgetSpent,
    Change,
    Checkpoints,
    Latency,
    MissedHeartbeat,
    Objective,
    Report,
    Restored,
    RootCounts,
    UnitReport,
    iso,
)


def made(**fields):
    given = {
        "topology": "words",
        "engine": "actors",
        "started": iso(0),
        "seconds": 12.34,
        "ended": "drained",
        "units": {"lines": UnitReport(tuples_out=1000)},
        "end_to_end_ms": Latency(1.0, 2.5, 9.0),
        "roots": RootCounts(emitted=3, acked=3),
    }
    return Report(**{**given, **fields})


def said(**fields):
    """The lines that are there because of these fields, without their indentation."""
    usual = str(made()).splitlines()
    return [line.strip() for line in str(made(**fields)).splitlines() if line not in usual]


def change(**fields):
    return Change(
        **{"t": 1.5, "unit": "count", "kind": "split", "before": 1, "after": 2, "reason": "", "policy": "", **fields}
    )


def test_of_a_run_in_which_nothing_happened_little_is_said():
    assert str(made()).splitlines() == [
        "words: drained after 12.3 s on the actors engine",
        "  lines: 1,000 out",
        "  end to end: p50 1.00 ms, p99 2.50 ms, max 9.00 ms",
        "  3 batches read, all processed",
    ]


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        (UnitReport(), "count: 0 in, 0 out"),
        (UnitReport(tuples_in=5), "count: 5 in, 0 out"),
        (
            UnitReport(tuples_in=5000, tuples_out=7, errors=2, dead_letters=1),
            "count: 5,000 in, 7 out, 2 errors, 1 dead letters",
        ),
        (UnitReport(tuples_in=9, split_tuples=4), "count: 9 in, 0 out, 4 of them of hot keys that were split"),
    ],
)
def test_of_a_unit_what_came_and_went_and_what_is_wrong(unit, line):
    assert said(units={"lines": UnitReport(tuples_out=1000), "count": unit}) == [line]


@pytest.mark.parametrize(
    ("roots", "line"),
    [
        (RootCounts(1, 1), "1 batch read, all processed"),
        (RootCounts(9, 5, open=4), "9 batches read, 5 processed, 4 not finished"),
        (RootCounts(9, 5, replayed=2, failed=3), "9 batches read, 5 processed, 3 given up, 2 sent again"),
        (
            RootCounts(2, 1, lost=1),
            "2 batches read, 1 processed, 1 open when their spout's process ended, and read again where the source can seek",
        ),
    ],
)
def test_what_became_of_the_batches_that_were_read(roots, line):
    assert said(roots=roots) == [line]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "1.5 s, count: split, 1 -> 2 sub-units (: asked for); no keys to move"),
        (
            {"policy": "auto", "reason": "busy", "moved_keys": 1, "held_back_ms": 2.34},
            "1.5 s, count: split, 1 -> 2 sub-units (auto: busy); 1 key moved, none of their tuples held back longer than 2.3 ms",
        ),
        (
            {"dropped": "it died", "after": 1, "policy": "auto"},
            "1.5 s, count: split, dropped: it died; it stays at 1 sub-unit (auto: asked for)",
        ),
    ],
)
def test_a_change_and_why(fields, line):
    assert said(changes=[change(**fields)]) == [line]


def test_of_many_changes_the_newest_are_told():
    lines = said(changes=[change(t=float(i)) for i in range(12)])
    assert lines[0] == "2 changes of parallelism, and at last:"
    assert [line[:3] for line in lines[1:]] == [f"{i}.0"[:3] for i in range(2, 12)]


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"deaths": 1}, ["1 process died and was replaced"]),
        ({"deaths": 2}, ["2 processes died and were replaced"]),
        ({"restarts": 1}, ["1 restart after transient errors"]),
        (
            {"checkpoints": Checkpoints(2, 1024, last_seconds=0.25)},
            ["2 checkpoints, 1,024 bytes, the last one in 250 ms"],
        ),
        (
            {"checkpoints": Checkpoints(1, 5, last_seconds=0.001, unaligned=1)},
            ["1 checkpoint, 5 bytes, the last one in 1 ms, 1 with rows in flight"],
        ),
        (
            {"restores": [Restored(2.0, 0, "it died", None), Restored(3.0, 4, "it died", 0.125)]},
            [
                "2.0 s: all went back to the beginning (it died)",
                "3.0 s: all went back to checkpoint 4 (it died); tuples flowed again after 0.12 s",
            ],
        ),
        (
            {
                "missed_heartbeats": [
                    MissedHeartbeat(1.0, "count", 2, 3.0, "", "", False),
                    MissedHeartbeat(1.0, "count", 2, 3.0, "process, slow.py:12", "", True),
                ]
            },
            [
                "1.0 s: no word from count/2 for 3.0 s",
                "1.0 s: no word from count/2 for 3.0 s (process, slow.py:12); it was replaced",
            ],
        ),
        (
            {"ended": "paused", "checkpoints": Checkpoints(newest=7, directory="state")},
            [
                "words: paused after 12.3 s on the actors engine",
                "paused at checkpoint 7 in state: --resume goes on from there",
            ],
        ),
        ({"landed": {"out": "out/x.jsonl"}}, ["landed by out: out/x.jsonl"]),
    ],
)
def test_what_befell_a_run_is_told(fields, lines):
    assert said(**fields) == lines


@pytest.mark.parametrize(
    ("measured", "burnt", "line"),
    [
        (None, 0.0, "objective p99 < 1 s: nothing came to its end"),
        (
            2000.0,
            0.5,
            "objective p99 < 1 s: kept, at 2.0 s; 50% of the error budget spent, over it in 1 of 9 s; cost: 1,234 sub-unit seconds",
        ),
        (
            12.3456,
            12.0,
            "objective p99 < 1 s: kept, at 12.3 ms; 12 times the error budget spent, over it in 1 of 9 s; cost: 1,234 sub-unit seconds",
        ),
    ],
)
def test_an_objective_and_what_it_cost(measured, burnt, line):
    objective = Objective("p99 < 1 s", True, measured, 10, 1, burnt, 9, 1, 1234.4)
    assert said(objectives=[objective]) == [line]


def test_an_objective_that_was_not_kept_is_missed():
    assert ": missed, at" in str(Objective("p99 < 1 s", False, 2000.0, 10, 1, 3.0, 9, 1, 1.0))


def test_of_a_run_on_spark_nothing_is_said_of_batches_for_it_counts_none():
    spark = made(engine="spark")
    assert "batches" not in str(spark)
    assert spark.as_dict()["roots"] is None


def test_as_json_it_has_plain_values_and_the_names_of_the_schema(tmp_path):
    report = made(
        changes=[change(held_back_ms=1 / 3)],
        collected={"out": [1]},
        landed={"out": "x"},
        units={"count": UnitReport(parallelism=[(0.0, 2)])},
    )
    report.write(tmp_path / "deep" / "report.json")
    read = json.loads((tmp_path / "deep" / "report.json").read_text())
    assert read == json.loads(json.dumps(report.as_dict()))
    assert next(iter(read)) == "schema"
    assert not read.keys() & {"collected", "landed"}
    (told,) = read["changes"]
    assert (told["from"], told["to"], told["held_back_ms"]) == (1, 2, 0.333333)
    assert not told.keys() & {"before", "after"}
    assert read["units"]["count"]["parallelism"] == [[0.0, 2]]


def test_one_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "report.json").mkdir()
    with pytest.raises(OSError):
        made().write(tmp_path / "report.json")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@given(name=st.text("<>&ab\"'", min_size=1, max_size=5).filter(lambda name: name != "b"))
def test_in_a_notebook_it_is_a_table_and_no_name_is_markup(name):
    report = made(
        topology=name,
        failure=name,
        units={name: UnitReport(tuples_in=1234, parallelism=[(0.0, 1), (1.0, 3)]), "b": UnitReport()},
        deaths=1,
    )
    text = report._repr_html_()
    assert text.count("<") == text.count(">")
    assert text.count("<tr>") == 3
    assert "<td>3</td><td>1,234</td><td>0</td>" in text
    assert "1 process died and was replaced" in text
    assert "1,234 in" not in text, "what the table has stands there alone"
    for tag in ("<a", "<b", "<>", "<&"):
        assert tag not in text


@pytest.mark.parametrize(
    ("spent", "line"),
    [
        (BudgetSpent("8", 8, 7.0, 4.125), "budget 8: at most 7 sub-units at a time, 4.12 sub-units on average"),
        (
            BudgetSpent("3.5/h", 3.5, 3.2, 2.41, 1.205, 1.75),
            "budget 3.5/h: at most 3.2/h at a time, 2.41/h on average; 1.205 spent of 1.75",
        ),
    ],
)
def test_what_was_spent_of_a_budget(spent, line):
    assert f"  {line}" in str(made(budget=spent)).splitlines()
