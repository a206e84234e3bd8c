"""What operators over streams come to, asked of DuckDB: one query for each operator, over many streams at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd

from tests.programs.timed import Program

__all__ = ["answers"]

#: what an operator is told; columns of table `p`, each a stream's
NUMBERS = ("size", "every", "offset", "gap", "before", "after", "within")
WORDS = ("unit", "zone", "week_starts", "kind", "keep", "missing")

FIGURES = """
    count(*), sum(v), avg(v), min(v), max(v), list(v ORDER BY v DESC)[:3], list(n ORDER BY n), count(DISTINCT v),
    quantile_disc(v, 0.5)"""

#: rows in each window of even length that contains their time
CELLS = """
cells AS (
    SELECT r.*, begins, ends FROM r JOIN p USING (run),
        LATERAL (SELECT unnest(generate_series(
            floor((ts - "offset" - size) / every)::BIGINT - 1, floor((ts - "offset") / every)::BIGINT + 1)) AS k),
        LATERAL (SELECT k * every + "offset" AS begins),
        LATERAL (SELECT CASE WHEN size > every THEN begins + size ELSE (k + 1) * every + "offset" END AS ends)
    WHERE begins <= ts AND ts < ends)"""

EVEN = f"WITH {CELLS} SELECT run, 'rows', key, begins, ends, {FIGURES} FROM cells GROUP BY run, key, begins, ends"


def _first_moment(local: str) -> str:
    """The first moment at which clocks show this: of a midnight that is there twice DuckDB takes the second."""
    moment = f"epoch(timezone(zone, {local}))"
    return f"{moment} - CASE WHEN timezone(zone, to_timestamp({moment} - 3600)) = {local} THEN 3600 ELSE 0 END"


CALENDAR = f"""
WITH local AS (
    SELECT r.*, zone, unit, week_starts, timezone(zone, to_timestamp(ts)) AS here FROM r JOIN p USING (run)),
first AS (
    SELECT *, CASE
        WHEN unit = 'week' AND week_starts = 'sunday' THEN date_trunc('week', here + INTERVAL 1 DAY) - INTERVAL 1 DAY
        ELSE date_trunc(unit, here) END::TIMESTAMP AS since FROM local),
bounded AS (
    SELECT *, since + CASE unit WHEN 'day' THEN INTERVAL 1 DAY WHEN 'week' THEN INTERVAL 7 DAY
        WHEN 'month' THEN INTERVAL 1 MONTH WHEN 'quarter' THEN INTERVAL 3 MONTH ELSE INTERVAL 1 YEAR END AS until
    FROM first)
SELECT run, 'rows', key, {_first_moment("since")}, {_first_moment("until")}, {FIGURES}
FROM bounded GROUP BY run, key, zone, since, until"""

SESSIONS = f"""
WITH reach AS (
    SELECT r.*, ts + coalesce(gap, 1 + abs(v)) AS until FROM r JOIN p USING (run)),
apart AS (
    SELECT *, coalesce(ts > max(until) OVER (
        PARTITION BY run, key ORDER BY ts, n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS opens FROM reach),
numbered AS (
    SELECT *, count(*) FILTER (opens) OVER (
        PARTITION BY run, key ORDER BY ts, n ROWS UNBOUNDED PRECEDING) AS session FROM apart)
SELECT run, 'rows', key, min(ts), max(until), {FIGURES} FROM numbered GROUP BY run, key, session"""

COUNTS = f"""
WITH counted AS (
    SELECT r.*, row_number() OVER (PARTITION BY run, key ORDER BY i) - 1 AS j,
        count(*) OVER (PARTITION BY run, key) AS total FROM r),
ending AS (
    SELECT c.*, size, unnest(generate_series(every::BIGINT, (ceil(total / every) * every)::BIGINT, every::BIGINT)) AS until
    FROM counted c JOIN p USING (run))
SELECT run, 'rows', key, greatest(0, until - size), until, {FIGURES}
FROM ending WHERE j >= until - size AND j < until GROUP BY run, key, until, size"""

RUNNING = f"""
SELECT a.run, 'rows', a.key, {FIGURES.replace("v", "b.v").replace("list(n ORDER BY n)", "list(b.n ORDER BY b.n)").replace("ab.vg", "avg")}
FROM r a JOIN r b ON a.run = b.run AND a.key = b.key AND b.i <= a.i GROUP BY a.run, a.key, a.i"""

PAIRWISE = """
SELECT run, 'rows', key, before, n FROM (SELECT *, lag(n) OVER (PARTITION BY run, key ORDER BY i) AS before FROM r)
WHERE before IS NOT NULL"""

CHANGES = """
SELECT run, 'rows', key, n FROM (SELECT *, lag(v) OVER (PARTITION BY run, key ORDER BY i) AS before FROM r)
WHERE before IS DISTINCT FROM v"""

NEAR = """
WITH near AS (
    SELECT l.run, l.key, l.n AS a, o.n AS b,
        row_number() OVER (PARTITION BY l.run, l.n ORDER BY o.ts, o.n) AS nth,
        row_number() OVER (PARTITION BY l.run, l.n ORDER BY o.ts DESC, o.n DESC) AS nth_last, keep
    FROM r l JOIN p USING (run) JOIN r o ON l.run = o.run AND l.key = o.key AND l.side = 0 AND o.side = 1
        AND o.ts BETWEEN l.ts - before AND l.ts + after),
pairs AS (
    SELECT * FROM near WHERE keep = 'all' OR (keep = 'first' AND nth = 1) OR (keep = 'last' AND nth_last = 1))
SELECT run, 'rows', key, a, b FROM pairs
UNION ALL
SELECT run, 'rows', key, n, NULL FROM r JOIN p USING (run) WHERE side = 0 AND kind IN ('left', 'outer')
    AND NOT EXISTS (FROM pairs q WHERE q.run = r.run AND q.a = r.n)
UNION ALL
SELECT run, 'rows', key, NULL, n FROM r JOIN p USING (run) WHERE side = 1 AND kind IN ('right', 'outer')
    AND NOT EXISTS (FROM pairs q WHERE q.run = r.run AND q.b = r.n)"""

TOGETHER = f"""
WITH {CELLS},
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run, key, begins, side ORDER BY ts, n) AS nth,
        row_number() OVER (PARTITION BY run, key, begins, side ORDER BY ts DESC, n DESC) AS nth_last FROM cells),
chosen AS (
    SELECT ranked.* FROM ranked JOIN p USING (run)
    WHERE keep = 'all' OR (keep = 'first' AND nth = 1) OR (keep = 'last' AND nth_last = 1)),
matched AS (
    SELECT coalesce(l.run, o.run) AS run, coalesce(l.key, o.key) AS key, l.n AS a, o.n AS b
    FROM (FROM chosen WHERE side = 0) l FULL JOIN (FROM chosen WHERE side = 1) o
        ON l.run = o.run AND l.key = o.key AND l.begins = o.begins)
SELECT run, 'rows', key, a, b FROM matched JOIN p USING (run)
WHERE (a IS NOT NULL OR kind IN ('right', 'outer')) AND (b IS NOT NULL OR kind IN ('left', 'outer'))"""

AS_OF = """
WITH versions AS (SELECT run, key, ts, max(n) AS n FROM r WHERE side = 1 GROUP BY run, key, ts),
held AS (
    SELECT l.run, l.key, l.n AS a, o.n AS b FROM (FROM r WHERE side = 0) l
    ASOF LEFT JOIN versions o ON l.run = o.run AND l.key = o.key AND l.ts >= o.ts)
SELECT run, CASE WHEN b IS NULL AND missing = 'drop' THEN 'unmatched' ELSE 'rows' END, key, a, b
FROM held JOIN p USING (run)"""

TABLE = """
WITH versions AS (SELECT run, key, i, CASE WHEN NOT gone THEN n END AS n FROM r WHERE side = 1),
held AS (
    SELECT l.run, l.key, l.i, l.n AS a, o.n AS b FROM (FROM r WHERE side = 0) l
    ASOF LEFT JOIN versions o ON l.run = o.run AND l.key = o.key AND l.i >= o.i),
waited AS (
    SELECT h.run, h.key, h.a, h.b, w.n AS c FROM held h
    ASOF LEFT JOIN (FROM versions WHERE n IS NOT NULL) w ON h.run = w.run AND h.key = w.key AND h.i <= w.i),
answered AS (
    SELECT waited.*, missing, CASE WHEN missing = 'wait' THEN coalesce(b, c) ELSE b END AS d FROM waited JOIN p USING (run))
SELECT run, CASE WHEN d IS NULL AND missing <> 'none' THEN 'unmatched' ELSE 'rows' END, key, a, d FROM answered"""

TABLES = """
WITH newest AS (
    SELECT *, last_value(CASE WHEN side = 0 THEN told END IGNORE NULLS) OVER w AS a,
        last_value(CASE WHEN side = 1 THEN told END IGNORE NULLS) OVER w AS b
    FROM (SELECT *, CASE WHEN gone THEN -1 ELSE n END AS told FROM r)
    WINDOW w AS (PARTITION BY run, key ORDER BY i ROWS UNBOUNDED PRECEDING)),
there AS (
    SELECT run, key, i, nullif(a, -1) AS a, nullif(b, -1) AS b, CASE kind
        WHEN 'inner' THEN nullif(a, -1) IS NOT NULL AND nullif(b, -1) IS NOT NULL
        WHEN 'left' THEN nullif(a, -1) IS NOT NULL WHEN 'right' THEN nullif(b, -1) IS NOT NULL
        ELSE nullif(a, -1) IS NOT NULL OR nullif(b, -1) IS NOT NULL END AS joined
    FROM newest JOIN p USING (run)),
changed AS (
    SELECT *, coalesce(lag(joined) OVER (PARTITION BY run, key ORDER BY i), false) AS was FROM there)
SELECT run, 'rows', key, CASE WHEN joined THEN a END, CASE WHEN joined THEN b END FROM changed WHERE joined OR was"""

DISTINCT = """
WITH came AS (
    SELECT run, key, within, list([{'ts': ts, 'n': n}] ORDER BY i) AS each FROM r JOIN p USING (run) GROUP BY run, key, within)
SELECT run, 'rows', key, unnest(list_transform(list_reduce(each, lambda kept, one:
    CASE WHEN len(list_filter(kept, lambda other: abs(one[1].ts - other.ts) < within)) > 0 THEN kept
    ELSE list_concat(kept, one) END), lambda one: one.n)) FROM came"""

QUERIES = {
    "tumbling": EVEN,
    "sliding": EVEN,
    "late tumbling": EVEN,
    "calendar": CALENDAR,
    "session": SESSIONS,
    "dynamic session": SESSIONS,
    "count": COUNTS,
    "running": RUNNING,
    "pairwise": PAIRWISE,
    "changes": CHANGES,
    "interval join": NEAR,
    "window join": TOGETHER,
    "as-of join": AS_OF,
    "table join": TABLE,
    "tables join": TABLES,
    "distinct": DISTINCT,
}


def answers(programs: Mapping[int, Program], late: Mapping[int, frozenset[int]]) -> dict[int, dict[str, list[Any]]]:
    """Return what DuckDB says to all of these that it can be asked about, by number: sink -> (key, what came out).

    `late` has the numbers of rows that are not to count. In windows whose tuples may be late it is asked about tumbling ones alone.
    """
    found: dict[int, dict[str, list[Any]]] = {}
    by_query: dict[str, list[int]] = defaultdict(list)
    for run, program in programs.items():
        if program.shape in QUERIES:
            by_query[QUERIES[program.shape]].append(run)
            found[run] = defaultdict(list)
    database = duckdb.connect(config={"threads": 1})
    try:
        for query, runs in by_query.items():
            keys: dict[int, list[Any]] = {}
            rows, parameters = [], []
            for run in runs:
                program = programs[run]
                known = keys[run] = list(dict.fromkeys(key for each in program.spouts.values() for key, _ in each))
                parameters.append((run, *[program.how.get(name) for name in (*NUMBERS, *WORDS)]))
                rows += [
                    (run, v["side"], i, known.index(key), v["at"], v["n"], v["v"], v["gone"])
                    for each in program.spouts.values()
                    for i, (key, v) in enumerate(each)
                    if v["n"] not in late.get(run, ())
                ]
            _table_of(database, "p", parameters, ["run", *NUMBERS, *WORDS])
            _table_of(database, "r", rows, ["run", "side", "i", "key", "ts", "n", "v", "gone"])
            for run, sink, key, *told in database.execute(query).fetchall():
                shape = programs[run].shape
                found[run][sink].append((keys[run][key], _as_plain(shape, sink, told)))
    finally:
        database.close()
    return found


TYPES = {
    **dict.fromkeys(NUMBERS, "DOUBLE"),
    **dict.fromkeys(WORDS, "VARCHAR"),
    **dict.fromkeys(("run", "side", "i", "key", "n"), "BIGINT"),
    **dict.fromkeys(("ts", "v"), "DOUBLE"),
    "gone": "BOOLEAN",
}


def _table_of(database: Any, name: str, rows: list[tuple[Any, ...]], columns: list[str]) -> None:
    typed = ", ".join(f'"{column}" {TYPES[column]}' for column in columns)
    database.execute(f"CREATE OR REPLACE TABLE {name} ({typed})")
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    database.register("given", frame)
    database.execute(f"INSERT INTO {name} SELECT * FROM given")
    database.unregister("given")


def _as_plain(shape: str, sink: str, told: list[Any]) -> Any:
    if sink != "rows" or shape in ("distinct", "changes"):
        return told[0]
    if shape == "tables join" and told == [None, None]:
        return None
    return tuple(tuple(each) if isinstance(each, list) else each for each in told)
