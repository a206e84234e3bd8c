"""What tests of Flink, Kafka Streams and Bytewax say that joins put out, for the same tuples; the facts alone, each with its origin.

Flink's watermark w says that no more comes up to w, ours that nothing comes before it: theirs is one less, with whole times. Where a
peer shuts a bound out, the nearest whole number inside stands here.
"""

from __future__ import annotations

import pytest

from esault import Topology, TopologyFailed
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.interval_join import IntervalJoin
from esault.windows import SessionWindow

ONE_BY_ONE = Settings(root_rows=1, max_pending=1)


class Joined(IntervalJoin):
    """The bolt alone, told its watermarks."""

    def __init__(self, lower, upper, kind="inner"):
        super().__init__(-lower, upper, kind, "all")
        self.key, self.emitted = "key", []

    def emit(self, key, value, stream=None):
        self.emitted.append(value)

    def left_of(self):
        return [at for at, _, _ in self.left]

    def right_of(self):
        return [at for at, _, _ in self.right]


def run(rows, build):
    """Rows are (side, key, value) and come one by one, in this order, the time being the value's last part."""
    t = Topology("peers")
    both = t.spout("both", Items([(key, (side, value)) for side, key, value in rows]), time=lambda v: v[1][-1])
    sides = [both.filter(lambda v, s=side: v[0] == s).map(lambda v: v[1]) for side in sorted({s for s, _, _ in rows})]
    build(t, *sides)
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    return [
        (key, tuple(side[0] if side else None for side in value) if value else None)
        for key, value in local.emitted("out")
    ]


def time(value):
    return value[-1]


# Flink: IntervalJoinOperatorTest ------------------------------------------------------------------------

ONE_TO_FOUR = [(side, n) for n in (1, 2, 3, 4) for side in ("left", "right")]


@pytest.mark.parametrize(
    ("lower", "upper", "pairs"),
    [
        # testNegativeInclusiveAndNegativeInclusive
        (-2, -1, [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3)]),
        # testNegativeInclusiveAndPositiveInclusive
        (-1, 1, [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (4, 3), (4, 4)]),
        # testNegativeExclusiveAndNegativeExlusive
        (-2, -2, [(3, 1), (4, 2)]),
        # testNegativeExclusiveAndPositiveExlusive
        (0, 0, [(1, 1), (2, 2), (3, 3), (4, 4)]),
    ],
)
def test_flink_pairs_within_bounds(lower, upper, pairs):
    join = Joined(lower, upper)
    for side, n in ONE_TO_FOUR:
        assert join.take(side, n, n, n)
    assert sorted(join.emitted) == pairs


@pytest.mark.parametrize(
    ("lower", "upper", "pairs"),
    [
        # testImplementationMirrorsCorrectly, testPositiveInclusiveAndPositiveInclusive
        (1, 2, [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]),
        # testPositiveExclusiveAndPositiveExlusive
        (2, 2, [(1, 3), (2, 4)]),
    ],
)
def test_flink_bounds_that_are_both_later_are_said_from_the_other_side(lower, upper, pairs):
    join = Joined(-upper, -lower)
    for side, n in ONE_TO_FOUR:
        assert join.take("right" if side == "left" else "left", n, n, n)
    assert sorted((left, right) for right, left in join.emitted) == pairs


@pytest.mark.parametrize(
    ("lower", "upper", "kept"),
    [
        # testStateCleanupNegativeInclusiveNegativeInclusive
        (-1, 0, {1: ([2, 3, 4, 5], [1, 2, 3, 4, 5]), 4: ([5], [4, 5]), 6: ([], [])}),
        # testStateCleanupNegativePositiveNegativeExlusive
        (-1, 0, {1: ([2, 3, 4, 5], [1, 2, 3, 4, 5]), 4: ([5], [4, 5]), 6: ([], [])}),
        # testStateCleanupPositiveInclusivePositiveInclusive, testStateCleanupPositiveExlusivePositiveExclusive
        (0, 1, {1: ([1, 2, 3, 4, 5], [2, 3, 4, 5]), 4: ([4, 5], [5]), 6: ([], [])}),
    ],
)
def test_flink_frees_state_as_the_watermark_passes(lower, upper, kept):
    join = Joined(lower, upper)
    for side in ("left", "right"):
        for n in range(1, 6):
            join.take(side, n, n, 0)
    for watermark, (left, right) in kept.items():
        join.advance(watermark + 1)
        assert (join.left_of(), join.right_of()) == (left, right)
    assert not join.needed


def test_flink_goes_on_from_a_snapshot():
    """testRestoreFromSnapshot."""
    first, second = Joined(-1, 1), Joined(-1, 1)
    for n in (1, 2, 3):
        first.take("left", n, n, n)
        first.take("right", n, n, n)
    second.__setstate__(first.__getstate__())
    second.take("left", 4, 4, 4)
    second.take("right", 4, 4, 4)
    assert first.emitted == [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (2, 3), (3, 3)]
    assert sorted(second.emitted) == [(3, 4), (4, 3), (4, 4)]


@pytest.mark.parametrize(
    ("before", "behind", "late"),
    [
        # testDiscardsLateData
        ([1, 2, 3], [("left", 1), (None, 4), (None, 5)], [("left", 1)]),
        # testLateData
        ([3], [(None, 4), ("left", 1), ("right", 2), (None, 5)], [("left", 1), ("right", 2)]),
    ],
)
def test_flink_leaves_out_what_is_late_on_either_side(before, behind, late):
    join, found = Joined(-1, 1), []
    for watermark, rows in ((0, [(None, n) for n in before]), (4, behind)):
        for at, n in rows:
            for side in ("left", "right") if at is None else (at,):
                if not join.take(side, n, n, watermark):
                    found.append((side, n))
    times = {n for _, n in behind if _ is None} | set(before)
    assert found == late
    assert sorted(join.emitted) == sorted((a, b) for a in times for b in times if abs(a - b) <= 1)


@pytest.mark.parametrize(
    "side",
    [
        # testFailsWithNoTimestampsLeft
        "a",
        # testFailsWithNoTimestampsRight
        "b",
    ],
)
def test_flink_refuses_what_has_no_time(side):
    rows = [(other, "k", (other, None if other == side else 0)) for other in "ab"]
    with pytest.raises(TopologyFailed, match="time"):
        run(rows, lambda t, a, b: a.join("out", b, within=(0, 0), time=time))


# Kafka Streams: KStreamKStream...JoinTest ---------------------------------------------------------------


def test_kafka_emits_what_has_no_partner_once_its_window_has_closed():
    """KStreamKStreamOuterJoinTest.testOuterJoinDuplicates, without the grace of 10 and so without the late record."""
    rows = [
        ("a", 0, ("A0", 0)),
        ("a", 0, ("A0-0", 0)),
        ("b", 1, ("11", 0)),
        ("b", 1, ("12", 0)),
        ("b", 1, ("10", 111)),
        ("b", 3, ("100", 211)),
        ("a", 2, ("A2", 211)),
        ("a", 2, ("A2-0", 211)),
        ("b", 2, ("13", 211)),
        ("b", 2, ("14", 211)),
        ("b", 3, ("100", 1500)),
    ]
    found = run(rows, lambda t, a, b: a.join("out", b, within=(100, 100), time=time, kind="outer"))
    assert sorted(found, key=repr) == sorted(
        [
            (1, (None, "11")),
            (1, (None, "12")),
            (0, ("A0", None)),
            (0, ("A0-0", None)),
            *((2, (a, b)) for a in ("A2", "A2-0") for b in ("13", "14")),
            (1, (None, "10")),
            (3, (None, "100")),
            (3, (None, "100")),
        ],
        key=repr,
    )


def test_kafka_emits_no_null_where_there_was_a_partner():
    """KStreamKStreamOuterJoinTest.testLeftExpiredNonJoinedRecordsAreEmittedByTheLeftProcessor."""
    rows = [
        ("a", 0, ("A0", 1)),
        ("a", 1, ("A1", 2)),
        ("a", 0, ("A0-0", 3)),
        ("b", 1, ("11", 3)),
        ("a", 2, ("dummy", 401)),
        ("b", 2, ("100", 401)),
    ]
    found = run(rows, lambda t, a, b: a.join("out", b, within=(100, 100), time=time, kind="outer"))
    pairs = [(1, ("A1", "11")), (0, ("A0", None)), (0, ("A0-0", None)), (2, ("dummy", "100"))]
    assert found[0] == pairs[0] and sorted(found, key=repr) == sorted(pairs, key=repr)


def test_kafka_includes_both_bounds_of_a_window():
    """KStreamKStreamJoinTest.testWindowing: B0 to B3 at 1000 to 1003, those of the other side at 899 to 1104, 100 on either side."""
    rows = [("a", n, (f"B{n}", 1000 + n)) for n in range(4)]
    rows += [
        ("b", n, (f"{at}", at)) for at in (1100, 1101, 1102, 1103, 1104, 899, 900, 901, 902, 903) for n in range(4)
    ]

    def build(t, a, b):
        a.timed(time, lateness=1000).join("out", b.timed(time, lateness=1000), within=(100, 100), time=time)

    found = {(key, int(right)) for key, (_, right) in run(rows, build)}
    assert found == {
        (n, at) for n in range(4) for at in (*range(1100, 1105), *range(899, 904)) if abs(at - 1000 - n) <= 100
    }
    assert len(found) == (4 + 3 + 2 + 1) + (0 + 1 + 2 + 3 + 4)  # at 1100 to 1103, and at 899 to 903


def tables(kind, steps):
    """Each step is (side, value) and what it must put out."""
    rows = [(side, "k", None if value is None else (value, 0)) for side, value, _ in steps]
    t = Topology("tables")
    both = t.spout("both", Items([(key, (side, value)) for side, key, value in rows]))
    sides = [both.filter(lambda v, s=side: v[0] == s).map(lambda v: v[1]) for side in "ab"]
    sides[0].join_tables("out", sides[1], kind=kind)
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    found = [v and tuple(side and side[0] for side in v) for _, v in local.emitted("out")]
    assert found == [out for _, _, outs in steps for out in outs]


def test_kafka_joins_two_tables_outer():
    """KTableKTableOuterJoinTest.testJoin."""
    tables(
        "outer",
        [
            ("a", "X", [("X", None)]),
            ("b", "Y", [("X", "Y")]),
            ("a", "XX", [("XX", "Y")]),
            ("b", "YY", [("XX", "YY")]),
            ("b", None, [("XX", None)]),
            ("a", "XXX", [("XXX", None)]),
            ("a", None, [None]),
            ("b", "Z", [(None, "Z")]),
        ],
    )


def test_kafka_joins_two_tables_inner():
    """KTableKTableInnerJoinTest.testJoin: a removal is sent on where there was a pair, and only there."""
    tables(
        "inner",
        [
            ("a", "X", []),
            ("b", "Y", [("X", "Y")]),
            ("a", "XX", [("XX", "Y")]),
            ("b", None, [None]),
            ("a", "XXX", []),
            ("a", None, []),
        ],
    )


def test_kafka_joins_two_tables_left():
    """KTableKTableLeftJoinTest.testJoin."""
    tables(
        "left",
        [
            ("b", "Y", []),
            ("a", "X", [("X", "Y")]),
            ("b", None, [("X", None)]),
            ("a", None, [None]),
            ("b", "YY", []),
        ],
    )


# Bytewax: pytests/operators/windowing/test_join_window.py, pytests/operators/test_join.py -----------------

LEFT, RIGHT = ("l", "ALL", ("1", 0)), ("r", "ALL", ("2", 1))


@pytest.mark.parametrize(
    ("rows", "how", "pairs"),
    [
        # test_join_window_first_complete: the first of each, once
        ([LEFT, RIGHT], {"keep": "first"}, [("1", "2")]),
        # test_join_window_last_final, test_join_window_default_mode_is_last_final: the last of each at the end, None where there is none
        ([LEFT, RIGHT, ("r", "ALL", ("3", 2))], {"keep": "last", "kind": "outer"}, [("1", "3")]),
        # test_join_window_product_final
        (
            [LEFT, ("l", "ALL", ("2", 1)), ("r", "ALL", ("3", 1)), ("r", "ALL", ("4", 2))],
            {"kind": "outer"},
            [("1", "3"), ("2", "3"), ("1", "4"), ("2", "4")],
        ),
    ],
)
def test_bytewax_modes_of_joins(rows, how, pairs):
    found = run(rows, lambda t, a, b: t.join("out", [a, b], SessionWindow(10), time=time, **how))
    assert found == [("ALL", pair) for pair in pairs]


def test_bytewax_a_running_join_is_that_of_two_tables():
    """test_join_last_running."""
    found = run([LEFT, RIGHT, ("r", "ALL", ("3", 2))], lambda t, a, b: a.join_tables("out", b, kind="outer"))
    assert found == [("ALL", ("1", None)), ("ALL", ("1", "2")), ("ALL", ("1", "3"))]


def test_bytewax_sides_without_a_value_are_none():
    """test_join_state_astuples: three sides, of which the second has nothing."""
    rows = [("a", "k", (1, 0)), ("a", "k", (2, 0)), ("b", "other", (0, 0)), ("c", "k", (3, 0)), ("c", "k", (4, 0))]
    found = run(rows, lambda t, *sides: t.join("out", sides, SessionWindow(10), time=time, kind="outer"))
    assert [pair for key, pair in found if key == "k"] == [(1, None, 3), (1, None, 4), (2, None, 3), (2, None, 4)]
