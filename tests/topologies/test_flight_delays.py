from __future__ import annotations

import zipfile

import pytest
from running import drained, module, rows

MOST = 20_000


@pytest.fixture
def flights(sql, tmp_path):
    """The package's file, as a database reads it."""
    with zipfile.ZipFile(module("flight_delays.py").data("flights.csv.zip")) as archive:
        archive.extractall(tmp_path)
    sql.execute(
        f"CREATE TABLE flights AS SELECT * FROM read_csv('{tmp_path}/flights.csv', nullstr = ['NA', '']) LIMIT {MOST}"
    )
    return sql


@pytest.mark.slow
def test_delays_by_airline_and_by_day_are_those_of_a_database(flights):
    local = drained("flight_delays.py", most=MOST, parallelism={"line": 2})
    lines = dict(rows(local, "lines"))  # the last total of each
    assert lines == {
        line: (count, minutes, worst)
        for line, count, minutes, worst in flights.execute(
            "SELECT carrier || ' ' || origin, count(*), sum(arr_delay)::BIGINT, max(arr_delay)::BIGINT FROM flights "
            "WHERE arr_delay IS NOT NULL GROUP BY 1"
        ).fetchall()
    }
    assert len(lines) > 20
    days = dict(rows(local, "days"))
    assert days == {
        day: (count, cancelled, late)
        for day, count, cancelled, late in flights.execute(
            "SELECT strftime(make_date(year, month, day), '%Y-%m-%d'), count(*), count(*) FILTER (arr_delay IS NULL), "
            "count(*) FILTER (arr_delay >= 60) FROM flights GROUP BY 1"
        ).fetchall()
    }
    assert sum(count for count, _, _ in days.values()) == MOST
