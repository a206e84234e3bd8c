"""`esault status`: a run as a table."""

from __future__ import annotations

from esault.cli.status import _lines


def unit(name="count", **said):
    return {
        "name": name,
        "kind": "bolt",
        "sub_units": 2,
        "tuples_in": 12_345,
        "tuples_out": 7,
        "backlog": 0,
        "p50_ms": 1.234,
        "p99_ms": 20.0,
        "watermark": None,
        **said,
    }


def status(*units, **said):
    return {"topology": "words", "phase": "running", "seconds": 3.21, "pid": 7, "run": "ab12", "units": units, **said}


def test_the_head_says_what_there_is_to_say():
    assert _lines(status())[0] == "words: running for 3.2 s, process 7, run ab12"
    said = _lines(status(draining=True, slots=8, free_slots=0, checkpoint=3, restores=1))[0]
    assert said == ("words: ending for 3.2 s, process 7, run ab12, 0 of 8 slots free, checkpoint 3, went back 1 time")


def test_columns_are_as_wide_as_what_stands_in_them():
    head, row, chained = _lines(status(unit(), unit("a-long-name", chained_to="count")))[1:]
    assert len(head) == len(row) == len(chained)
    assert head.split() == ["unit", "kind", "sub-units", "in", "out", "waiting", "dropped", "late", "errors", "p50", "ms", "p99", "ms"]  # fmt: skip
    assert row.split() == ["count", "bolt", "2", "12,345", "7", "0", "0", "0", "0", "1.23", "20.00"]
    assert row[: head.index("sub-units") + len("sub-units")].endswith("        2"), "numbers stand to the right"
    assert chained.split()[:4] == ["a-long-name", "bolt", "in", "count"]


def test_trouble_that_some_unit_has_gets_a_column_and_other_trouble_none():
    lines = _lines(status(unit(dead_letters=4), unit("other")))
    assert "dead letters" in lines[1] and "state lost" not in lines[1]
    at = lines[1].index("dead letters") + len("dead letters") - 1
    assert [line[at] for line in lines[2:]] == ["4", "0"]


def test_watermarks_hot_keys_and_scaling_stand_below():
    told = status(
        unit(watermark=90.0), unit("merge", split_keys={"count": {"the": 3}}), now=100.0, scaling=["count: grows"]
    )
    assert _lines(told)[4:] == [
        "  count: watermark 10.0 s behind the clock",
        "  count: key the is hot, and split over 3 sub-units by merge",
        "  count: grows",
    ]


def test_hosts_say_what_they_have_and_have_sent():
    a = {
        "draining": True,
        "free": 1,
        "slots": 4,
        "cpu": 0.5,
        "sub_units": ["count/1", "count/2"],
        "sent": {"c": 1e6, "b": 2_500_000},
        "others": [["other", None, 2], ["more", 5, 1]],
    }
    b = {"draining": False, "free": 0, "slots": 0, "cpu": None, "sub_units": [], "sent": {}}
    assert _lines(status(hosts={"a": a, "b": b}))[2:] == [
        "  host a: draining, 1 of 4 slots free, 50 % busy; count/1 count/2; sent 2.5 MB to b, 1.0 MB to c; other has 2 for itself; "
        "more has 1 at priority 5",
        "  host b: 0 of 0 slots free; none",
    ]
