"""Spark's own tests of sessions, watermarks and duplicates; the facts alone, in seconds.

The watermark of Spark is the latest time less the delay, as ours with its lateness, and is applied behind each batch.
"""

from __future__ import annotations

import pytest
from steps import Rows
from test_joins import ONE_BY_ONE
from test_timers import Steps as KeySteps

from esault import Topology
from esault import aggregates as agg
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, TumblingWindow

# Spark: StreamingSessionWindowSuite ------------------------------------------------------------------------------

LINES = [
    (40, "hello world spark streaming"),
    (41, "world hello structured streaming"),
    (25, "spark streaming"),
    (30, "spark streaming"),
    (60, "hello apache spark"),
    (90, "structured streaming"),
]
CLOSED = [
    ("hello", 40, 51, 2),
    ("spark", 25, 50, 3),
    ("streaming", 25, 51, 4),
    ("structured", 41, 51, 1),
    ("world", 40, 51, 2),
]
OPEN = [
    ("apache", 60, 70, 1),
    ("hello", 60, 70, 1),
    ("spark", 60, 70, 1),
    ("streaming", 90, 100, 1),
    ("structured", 90, 100, 1),
]


def lengths(found):
    return sorted((key, start, end, len(rows)) for key, (start, end, rows) in found)


def test_sessions_of_words(steps):
    """StreamingSessionWindowSuite, "append mode - session window": a gap of ten, a delay of thirty"""
    w = steps(SessionWindow(10), Rows)
    (first, second, third, fourth, fifth, sixth) = LINES
    batches = [(first, second), (third,), ((0, "spark streaming"),), (fourth,), (fifth,), (sixth,)]
    latest = 0
    for batch in batches:
        for at, line in batch:
            out = [row for word in line.split() for row in w.give(word, at)]
            # The session of time 0 would end at 10, and the watermark is 11.
            assert [row[0] for row in out] == (["late", "late"] if at == 0 else [])
            latest = max(latest, at)
        found = w.watermark(latest - 30)
        assert lengths(found) == (CLOSED if latest == 90 else [])
    assert lengths(w.end()) == OPEN
    assert w.dropped == 2


@pytest.mark.parametrize(
    "key_of",
    [
        # "complete mode - session window", by what its last answer holds
        lambda word: word,
        # "complete mode - session window - nested tuple key"
        lambda word: ((word, word), word),
        # "complete mode - session window - multiple col key"
        lambda word: (word, (word, word)),
    ],
)
def test_sessions_of_words_in_the_end(steps, key_of):
    w = steps(SessionWindow(10), Rows)
    for at, line in LINES:
        for word in line.split():
            w.give(key_of(word), at)
    assert lengths(w.end()) == sorted((key_of(word), *rest) for word, *rest in [*CLOSED, *OPEN])


def test_gaps_of_words(steps):
    """StreamingSessionWindowSuite, "SPARK-36465: dynamic gap duration": one second behind the word hello, ten behind others"""
    w = steps(SessionWindow(lambda value: 1 if value["n"] == "hello" else 10), Rows)
    for at, line in LINES[:2]:
        for word in set(line.split()) - {"world", "structured"}:  # whose gaps are none
            w.give(word, at, word)
    assert lengths(w.end()) == [("hello", 40, 42, 2), ("spark", 40, 50, 1), ("streaming", 40, 51, 2)]


# Spark: EventTimeWatermarkSuite ------------------------------------------------------------------------------------


def test_counts_of_tumbling_windows(steps):
    """EventTimeWatermarkSuite, "append mode": five long, a delay of ten"""
    w = steps(TumblingWindow(5), Rows)
    for at in range(10, 16):
        w.give("k", at)
    assert w.watermark(5) == []
    w.give("k", 25)
    assert lengths(w.watermark(15)) == [("k", 10, 15, 5)]
    assert w.give("k", 10) == [("late", "k", {"at": 10, "n": 1})]
    assert w.watermark(15) == []


def restart(w):
    """All state goes through bytes to another owner, how far time had come included."""
    moving, w._moving = w._moving, True
    w._step()
    w._moving = moving


def test_counts_after_restarts(steps):
    """EventTimeWatermarkSuite, "recovery": what was late before the restart is so behind it"""
    w = steps(TumblingWindow(5), Rows)
    for at in (*range(10, 16), 25):
        w.give("k", at)
    assert lengths(w.watermark(15)) == [("k", 10, 15, 5)]
    restart(w)
    for at in (10, 27, 30):
        w.give("k", at)
    assert lengths(w.watermark(20)) == [("k", 15, 20, 1)]
    restart(w)
    assert w.give("k", 17)[0][0] == "late"
    w.give("k", 40)
    assert lengths(w.watermark(30)) == [("k", 25, 30, 2)]
    assert w.dropped == 2


@pytest.mark.parametrize(
    ("key_of", "first", "last"),
    [
        # "append mode - session"
        (lambda at: at // 10, [(1, 10, 16, 2), (1, 17, 22, 1)], [(2, 25, 30, 1)]),
        # "append mode - session - no key"
        (lambda at: "all", [("all", 10, 16, 2), ("all", 17, 22, 1)], [("all", 25, 30, 1)]),
    ],
)
def test_sessions_that_the_watermark_closes(steps, key_of, first, last):
    w = steps(SessionWindow(5), Rows)
    for at in (10, 11, 17, 25, 35):
        w.give(key_of(at), at)
        found = w.watermark(at - 10)
        assert lengths(found) == (first if at == 35 else [])
    assert w.give(key_of(10), 10)[0][0] == "late"
    w.give(key_of(40), 40)
    assert w.watermark(30) == []  # one at 30 would extend the session that ends there
    assert lengths(w.watermark(31)) == last


# Spark: StreamingDeduplicationSuite --------------------------------------------------------------------------------


def distinct(rows, build):
    """Rows are (key, value), one by one; (key, value) of what came out."""
    t = Topology("distinct")
    build(t.spout("rows", Items(rows), time=lambda v: v["at"], lateness=10))
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    return local.emitted("out")


#: seconds within which all of a test happens
EVER = 1000


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # "deduplicate with all columns"
        ([("a", 0), ("a", 0), ("b", 0)], [("a", 0), ("b", 0)]),
        # "deduplicate with some columns"
        ([("a", 1), ("a", 2), ("b", 1)], [("a", 1), ("b", 1)]),
        # "SPARK-21546: dropDuplicates should ignore watermark when it's not a key"
        ([(1, 1), (1, 2), (2, 2)], [(1, 1), (2, 2)]),
        # "deduplicate with file sink"
        ([("a", 0), ("a", 0), ("b", 0)], [("a", 0), ("b", 0)]),
    ],
)
def test_repeats_of_a_column(pairs, expected):
    rows = [(key, {"at": n, "n": n}) for key, n in pairs]
    found = distinct(rows, lambda s: s.distinct("out", within=EVER))
    assert [(key, value["n"]) for key, value in found] == expected


def whole(value):
    return value["k"], value["n"]


def column(value):
    return value["k"]


def test_repeats_left_out_twice():
    """StreamingDeduplicationSuite, "multiple deduplicates": by all of it, then by its first column"""
    rows = [(None, {"at": 0, "k": key, "n": n}) for key, n in (("a", 1), ("a", 2), ("b", 1))]
    found = distinct(
        rows, lambda s: s.distinct("once", key=whole, within=EVER).distinct("out", key=column, within=EVER)
    )
    assert [key for key, _ in found] == ["a", "b"]


TIMES = [*(at for _ in range(5) for at in range(10, 16)), 25, 10]


def test_repeats_of_a_time():
    """StreamingDeduplicationSuite, "deduplicate with watermark": 10 to 15 five times, then 25, 10 and 45"""
    found = distinct([(at, {"at": at}) for at in (*TIMES, 45)], lambda s: s.distinct("out", within=EVER))
    assert [key for key, _ in found] == [*range(10, 16), 25, 45]


def test_counts_without_repeats():
    """StreamingDeduplicationSuite, "deduplicate with aggregate - append mode": windows of five"""

    def build(stream):
        once = stream.distinct("once", within=EVER).key_by(lambda v: "all")
        once.aggregate("out", {"n": agg.count()}, TumblingWindow(5))

    found = distinct([(at, {"at": at}) for at in (*TIMES, 40)], build)
    assert [(value["start"], value["n"]) for _, value in found] == [(10, 5), (15, 1), (25, 1), (40, 1)]


def test_sums_without_repeats():
    """StreamingDeduplicationSuite, "deduplicate with aggregate - update mode": each new sum"""
    rows = [(None, {"at": 0, "k": key, "n": n}) for key, n in (("a", 1), ("a", 1), ("a", 2), ("b", 1))]

    def build(stream):
        stream.distinct("once", key=whole, within=EVER).key_by(column).aggregate("out", {"sum": agg.sum("n")})

    assert [(key, value["sum"]) for key, value in distinct(rows, build)] == [("a", 1), ("a", 3), ("b", 1)]


@pytest.mark.parametrize("moves", [False, True])
def test_what_is_behind_the_watermark_is_no_new_tuple(moves):
    """StreamingDeduplicationSuite, "SPARK-19841: watermarkPredicate should filter based on keys": by number and time"""
    w = KeySteps(moves, lambda s: s.distinct("unit", within=1))
    batches = [
        ([(1, 1), (1, 1), (1, 2)], [1, 2]),
        ([(1, 1), (2, 3), (2, 4)], [3, 4]),
        ([(1, 0), (1, 1), (3, 5), (3, 6)], [5, 6]),
        ([(1, 0), (4, 7)], [7]),
    ]
    for batch, expected in batches:
        found = [row for at, number in batch for row in w.give((number, at), at=at)]
        assert [key[0] for stream, key, _ in found if not stream] == expected
        w.watermark(max(at for at, _ in batch))
