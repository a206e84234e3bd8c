"""Kafka Streams' own tests of windows, sessions and joins of a stream with a table; the facts alone, times in ms as there.

A session of Kafka Streams ends with its last record, ours the gap behind that. Its grace is our lateness, and a window of time closes
at the end of itself and the grace in both.
"""

from __future__ import annotations

import pytest
from steps import Rows
from test_joins import ONE_BY_ONE, run

from esault import Bolt, Topology, by_key
from esault import aggregates as agg
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, SlidingWindow

# Kafka Streams: KStreamSessionWindowAggregateProcessorTest ------------------------------------------------

GAP = 5 * 60 * 1000


def sessions(found, gap=GAP):
    """(key, first record, last record, how many), as Kafka Streams says it."""
    return sorted((key, start, end - gap, len(rows)) for key, (start, end, rows) in found)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        # shouldCreateSingleSessionWhenWithinGap
        ([("john", 0), ("john", 500)], [("john", 0, 500, 2)]),
        # shouldMergeSessions
        ([("mel", 0), ("mel", GAP + 1), ("mel", GAP // 2)], [("mel", 0, GAP + 1, 3)]),
        # shouldUpdateSessionIfTheSameTime
        ([("mel", 0), ("mel", 0)], [("mel", 0, 0, 2)]),
        # shouldHaveMultipleSessionsForSameIdWhenTimestampApartBySessionGap
        (
            [("mel", 0), *[("mel", GAP + 1)] * 2, *[("mel", 2 * GAP + 2)] * 3],
            [("mel", 0, 0, 1), ("mel", GAP + 1, GAP + 1, 2), ("mel", 2 * GAP + 2, 2 * GAP + 2, 3)],
        ),
        # shouldRemoveMergedSessionsFromStateStore
        ([("a", 0), ("a", 100)], [("a", 0, 100, 2)]),
        # shouldHandleMultipleSessionsAndMerging
        (
            [
                *[(key, 0) for key in "abcd"],
                ("d", GAP // 2),
                ("a", GAP + 1),
                ("b", GAP + 1),
                ("a", GAP + 1 + GAP // 2),
                ("c", GAP + 1 + GAP // 2),
            ],
            [
                ("a", 0, 0, 1),
                ("a", GAP + 1, GAP + 1 + GAP // 2, 2),
                ("b", 0, 0, 1),
                ("b", GAP + 1, GAP + 1, 1),
                ("c", 0, 0, 1),
                ("c", GAP + 1 + GAP // 2, GAP + 1 + GAP // 2, 1),
                ("d", 0, GAP // 2, 2),
            ],
        ),
    ],
)
def test_sessions_of_records(steps, records, expected):
    w = steps(SessionWindow(GAP), Rows)
    for key, at in records:
        assert w.give(key, at) == []
    assert sessions(w.end()) == expected


# Kafka Streams: KStreamWindowAggregateTest ------------------------------------------------------------------


def test_windows_that_hop(steps):
    """testAggBasic: ten long, every five; ours that begin before time 0 are left out, Kafka Streams has none of them."""
    w = steps(SlidingWindow(10, 5), Rows)
    records = [("A", 1), ("B", 2), ("C", 3), ("D", 4), ("A", 1), ("A", 1), ("B", 2), ("D", 4), ("B", 2), ("C", 3)]
    records += [("A", 1), ("B", 2), ("D", 4), ("B", 2), ("C", 3)]
    for at, (key, n) in enumerate(records):
        w.give(key, at, n)
    for at, n in ((3, 1), (2, 2), (9, 3)):
        w.give("B", at, n)
    found = {(key, start): rows for key, (start, _, rows) in w.end() if start >= 0}
    assert found == {
        ("A", 0): (1, 1, 1),
        ("A", 5): (1, 1),
        ("A", 10): (1,),
        ("B", 0): (2, 2, 2, 1, 2, 3),
        ("B", 5): (2, 2, 2, 2, 3),
        ("B", 10): (2, 2),
        ("C", 0): (3, 3),
        ("C", 5): (3, 3),
        ("C", 10): (3,),
        ("D", 0): (4, 4),
        ("D", 5): (4, 4),
        ("D", 10): (4,),
    }


class WindowInKey(Bolt):
    """The window is part of the key, as it is there."""

    def process(self, key, value):
        self.emit((key, value["start"]), value["n"])


def test_windows_of_two_streams_that_are_joined():
    """testJoin: the windows of both streams, joined by key and window, in the end."""
    left = [("A", 0), ("B", 1), ("C", 2), ("D", 3), ("A", 9), ("A", 5), ("B", 6), ("D", 7), ("B", 8), ("C", 9)]
    right = [("A", 0), ("B", 1), ("C", 2), ("D", 20), ("A", 20), ("A", 5), ("B", 6), ("D", 7), ("D", 18), ("A", 21)]
    t = Topology("windows")
    sides = []
    for name, rows in (("left", left), ("right", right)):
        spout = t.spout(name, Items([(key, {"at": at}) for key, at in rows]), time=lambda v: v["at"], lateness=100)
        windows = spout.aggregate(f"{name}-windows", {"n": agg.count()}, SlidingWindow(10, 5))
        sides.append(windows.bolt(f"{name}-keyed", WindowInKey, by_key()))
    sides[0].join_tables("out", sides[1])
    local = LocalRuntime(t)
    local.run_until_drained()
    last = dict(local.emitted("out"))
    assert {key: pair for key, pair in last.items() if key[1] >= 0} == {
        ("A", 0): (3, 2),
        ("A", 5): (2, 1),
        ("B", 0): (3, 2),
        ("B", 5): (2, 1),
        ("C", 0): (2, 1),
        ("D", 0): (2, 1),
        ("D", 5): (1, 1),
    }


def test_records_of_windows_that_have_expired(steps):
    """shouldLogAndMeterWhenSkippingExpiredWindow: hopping windows kept for 100; what it counts are windows, seven of them."""
    w = steps(SlidingWindow(10, 5), Rows)
    w.give("k", 100, 100)
    w.watermark(10)  # a window of ten is done 90 behind its end
    late = [n for n in range(7) if w.give("k", n, n)]
    assert late == [0, 1, 2, 3, 4]
    found = {start: rows for _, (start, _, rows) in w.end()}
    assert found == {5: (5, 6), 95: (100,), 100: (100,)}


# Kafka Streams: KStreamKTableJoinTest, KStreamKTableLeftJoinTest ---------------------------------------------


def pushes(*parts):
    """Rows of ("stream" or "table", prefix, keys), one by one; a prefix that is None deletes."""
    return [
        ("a" if side == "stream" else "b", key, (prefix and f"{prefix}{key}", 0))
        for side, prefix, keys in parts
        for key in keys
    ]


def join(parts, missing):
    t = Topology("table")
    both = t.spout("both", Items([(key, (side, value)) for side, key, value in pushes(*parts)]))
    stream, table = [both.filter(lambda v, s=side: v[0] == s).map(lambda v: v[1][0]) for side in "ab"]
    stream.join_table("out", table, missing=missing)
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    return [f"{left}+{right}" for _, (left, right) in local.emitted("out")]


ALL, TWO = range(4), range(2)


@pytest.mark.parametrize(
    ("parts", "missing", "expected"),
    [
        # shouldNotJoinWithEmptyTableOnStreamUpdates
        ([("stream", "X", TWO)], "drop", ""),
        # shouldNotJoinOnTableUpdates
        (
            [
                ("stream", "X", TWO),
                ("table", "Y", TWO),
                ("stream", "X", ALL),
                ("table", "YY", ALL),
                ("stream", "X", ALL),
                ("table", "YYY", ALL),
            ],
            "drop",
            "X0+Y0 X1+Y1 X0+YY0 X1+YY1 X2+YY2 X3+YY3",
        ),
        # shouldJoinOnlyIfMatchFoundOnStreamUpdates
        ([("table", "Y", TWO), ("stream", "X", ALL)], "drop", "X0+Y0 X1+Y1"),
        # shouldClearTableEntryOnNullValueUpdates
        (
            [("table", "Y", ALL), ("stream", "X", ALL), ("table", None, TWO), ("stream", "XX", ALL)],
            "drop",
            "X0+Y0 X1+Y1 X2+Y2 X3+Y3 XX2+Y2 XX3+Y3",
        ),
        # testJoin of the left join: behind YY two are deleted, and all four of the stream come out
        (
            [("table", "YY", ALL), ("table", None, TWO), ("stream", "XX", ALL)],
            "none",
            "XX0+None XX1+None XX2+YY2 XX3+YY3",
        ),
    ],
)
def test_a_stream_and_a_table(parts, missing, expected):
    assert join(parts, missing) == expected.split()


# Kafka Streams: KStreamKStreamLeftJoinTest ---------------------------------------------------------------------


def test_pairs_of_a_left_join():
    """testLeftJoinWithDefaultSuppliers, testLeftJoinWithInMemoryCustomSuppliers: every record of a key with every one of the other side within the window, whichever came first."""
    keys = range(4)
    rows = [("a", n, (f"A{n}", 0)) for n in range(2)] + [("b", n, (f"a{n}", 0)) for n in range(2)]
    rows += [("a", n, (f"B{n}", 0)) for n in range(3)] + [("b", n, (f"b{n}", 0)) for n in keys]
    rows += [("a", n, (f"C{n}", 0)) for n in keys]
    found = run(rows, lambda t, a, b: a.join("out", b, within=(100, 100), time=lambda v: v[-1], kind="left"))
    pairs = "A0+a0 A1+a1 B0+a0 B1+a1 A0+b0 B0+b0 A1+b1 B1+b1 B2+b2 C0+a0 C0+b0 C1+a1 C1+b1 C2+b2 C3+b3"
    assert sorted(f"{left}+{right}" for _, (left, right) in found) == sorted(pairs.split())


def test_bounds_of_a_left_join():
    """testWindowing: B0 to B3 of the other side at 1000 to 1003, and this side's records from 1100 to 1104."""
    rows = [("b", n, (f"b{n}", 1000 + n)) for n in range(4)]
    rows += [("a", n, (f"{at}", at)) for at in range(1100, 1105) for n in range(4)]
    found = run(rows, lambda t, a, b: a.join("out", b, within=(100, 100), time=lambda v: v[-1], kind="left"))
    assert sorted((key, int(left), right) for key, (left, right) in found) == sorted(
        (n, at, f"b{n}" if at - 1000 - n <= 100 else None) for at in range(1100, 1105) for n in range(4)
    )
