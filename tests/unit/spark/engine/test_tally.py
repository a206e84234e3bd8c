"""Counts on their way from workers to the report: each taken once, and added up."""

from __future__ import annotations

from esault.spark.engine.tally import Count, Tally


def counted(rows: int, seconds: float) -> Count:
    count = Count()
    count.rows_in, count.rows_out, count.errors, count.dead_letters, count.late = rows, 2 * rows, 3, 2, 1
    count.busy = seconds
    count.latency.record(seconds, rows)
    count.end_to_end.record(2 * seconds, rows)
    return count


def test_what_is_taken_is_counted_no_more() -> None:
    count = counted(10, 0.5)
    assert count and count.pop() == (10, 20, 3, 2, 1)
    assert not count and count.pop() == (0, 0, 0, 0, 0)
    assert count.busy == 0.5 and count.latency.count == 10, "times are taken by themselves"
    busy, *_ = count.pop_times()
    assert busy == 0.5 and (count.busy, count.latency.count, count.end_to_end.count) == (0.0, 0, 0)


def test_a_run_has_the_sum_of_its_processes() -> None:
    tally = Tally({"split": None, "count": None})
    for rows, seconds in ((10, 0.5), (30, 1.5)):
        count = counted(rows, seconds)
        tally.add({"count": count.pop()})
        tally.add_times({"count": count.pop_times()})
    whole = tally.units["count"]
    assert whole.pop() == (40, 80, 6, 4, 2) and whole.busy == 2.0
    assert whole.latency.count == 40 and tally.end_to_end.count == 40
    assert not tally.units["split"]


def test_counts_of_earlier_versions_and_of_units_that_are_gone_do_no_harm() -> None:
    tally = Tally({"count": None})
    tally.add({"count": (1, 2, 0, 0, 0, 9.5, b"histogram")})  # 0.1 wrote times behind them
    assert tally.units["count"].pop() == (1, 2, 0, 0, 0)
    tally.add_times({"renamed": counted(1, 1.0).pop_times()})
    assert tally.end_to_end.count == 0
