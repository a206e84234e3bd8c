"""Spark's own tests of joins of two streams; the facts alone, in seconds.

The watermark w of Spark leaves out rows at w, ours those before it: theirs is ours less one, with whole times. It is told between the
rows here as it stood between the batches there, from the one with the least of both inputs' on.
"""

from __future__ import annotations

import pytest
from test_joins import Joined
from test_joins import run as join_run
from test_timers import Steps as KeySteps

from esault.windows import TumblingWindow

NEXT = 1
LEFT, RIGHT = 0, 1
EVER = 10**6


class JoinSteps(KeySteps):
    """One sub-unit of a join of streams 0 and 1, told its rows and watermarks; what comes out, and what is late."""

    def __init__(self, moving, build):
        def both(stream):
            timed = stream.timed(lambda value: value[1])
            build(timed.filter(lambda value: True), timed.filter(lambda value: True))

        super().__init__(moving, both)

    def row(self, side, key, at):
        self._step()
        self.operator.run(side, [key], [(key, at)], None)
        return self._pairs()

    def until(self, watermark):
        return self._as_pairs(self.watermark(watermark))

    def rest(self):
        self._step()
        for _ in self.operator.finishing():
            pass
        return self._pairs()

    def _pairs(self):
        return self._as_pairs(self._take())

    def _as_pairs(self, found):
        out = []
        for stream, key, value in found:
            out.append("late" if stream else (key, *(side and side[1] for side in value)))
        return sorted(out, key=str)


@pytest.fixture(params=[False, True], ids=["stays", "moves"])
def join(request):
    """An interval join: of the left of a time with the right from `before` before it to `after` behind it."""

    def make(before, after, kind="inner", keep="all"):
        return JoinSteps(request.param, lambda a, b: a.join("unit", b, within=(before, after), kind=kind, keep=keep))

    return make


# Spark: StreamingInnerJoinSuite ------------------------------------------------------------------------------------


def test_without_a_time_all_rows_are_kept(join):
    """StreamingInnerJoinSuite, "stream stream inner join on non-time column" """
    run, found = join(EVER, EVER), []
    for side, keys in (
        (LEFT, [1]),
        (RIGHT, [1, 10]),
        (LEFT, [10]),
        (RIGHT, [1]),
        (LEFT, [1]),
        (LEFT, [100]),
        (RIGHT, [100]),
    ):
        found.append([pair[0] for key in keys for pair in run.row(side, key, 0)])
    assert found == [[], [1], [10], [1], [1, 1], [], [100]]


def test_a_stream_with_itself(join):
    """StreamingInnerJoinSuite, "stream stream self join": by the rest of 5, all that has come"""
    run, found = join(EVER, EVER), []
    for number in (1, 2, 3, 6):
        found += run.row(LEFT, number % 5, number) + run.row(RIGHT, number % 5, number)
    assert sorted(found) == [(1, 1, 1), (1, 1, 6), (1, 6, 1), (1, 6, 6), (2, 2, 2), (3, 3, 3)]


def test_a_range_that_is_open_on_one_side():
    """StreamingInnerJoinSuite, "stream stream inner join with time range - with watermark - one side condition": left < right - 5"""
    bolt, found = Joined(-EVER, -6), []
    rows = [
        ("left", 5, 0, []),
        ("right", 11, 0, [(5, 11)]),
        ("right", 10, 0, []),
        ("left", 3, 0, [(3, 10), (3, 11)]),
        ("left", 30, 0, []),
        ("right", 20, 20, None),
        ("right", 21, 20, [(3, 21), (5, 21)]),
        ("right", 28, 20, [(3, 28), (5, 28)]),
        ("left", 20, 20, None),
        ("left", 21, 20, [(21, 28)]),
    ]
    for side, at, watermark, pairs in rows:
        # said from the other side, since the right one is later
        taken = bolt.take("left" if side == "right" else "right", at, at, watermark + NEXT)
        found.append(sorted((left, right) for right, left in bolt.emitted) if taken else None)
        bolt.emitted.clear()
    assert found == [pairs for *_, pairs in rows]


def test_a_range_that_is_bounded_on_both_sides(join):
    """StreamingInnerJoinSuite, "stream stream inner join with time range - with watermark - two side conditions" """
    run = join(5, 10)

    def rows(side, *times):
        return [pair[1:] if pair != "late" else pair for at in times for pair in run.row(side, 1, at)]

    assert rows(LEFT, 20) == []
    assert rows(RIGHT, 14, 15, 25, 26, 30, 31) == [(20, 15), (20, 25), (20, 26), (20, 30)]
    assert rows(RIGHT, 60) == []
    assert rows(LEFT, 49, 50, 65, 66) == [(50, 60), (65, 60)]
    run.until(30 + NEXT)
    assert rows(LEFT, 30, 31) == ["late", (31, 26), (31, 30), (31, 31)]
    assert rows(RIGHT, 80) == []
    run.until(46 + NEXT)
    assert rows(RIGHT, 46, 50) == ["late", (49, 50), (50, 50)]


# Spark: StreamingOuterJoinSuite, StreamingFullOuterJoinSuite, StreamingLeftSemiJoinSuite --------------------------


@pytest.mark.parametrize(
    ("kind", "keep", "third", "pairs", "alone"),
    [
        # StreamingOuterJoinSuite, "left outer with watermark range condition"
        ("left", "all", 11, [(1, 7, 10), (1, 7, 11)], [(3, 5, None)]),
        # StreamingOuterJoinSuite, "right outer with watermark range condition"
        ("right", "all", 11, [(1, 7, 10), (1, 7, 11)], [(2, None, 5)]),
        # StreamingFullOuterJoinSuite, "full outer join with watermark range condition"
        ("outer", "all", 9, [(1, 7, 10), (1, 7, 9)], [(2, None, 5), (3, 5, None)]),
    ],
)
def test_outer_joins_by_a_range(join, kind, keep, third, pairs, alone):
    run = join(5, 5, kind)
    assert run.row(LEFT, 1, 5) + run.row(LEFT, 3, 5) == []
    assert run.row(RIGHT, 1, 10) + run.row(RIGHT, 2, 5) == [(1, 5, 10)]
    assert run.row(RIGHT, 1, third) == ([] if third == 11 else [(1, 5, 9)])
    assert run.row(LEFT, 1, 7) + run.row(LEFT, 1, 30) == pairs
    assert run.row(RIGHT, 0, 30) == []
    assert run.until(20 + NEXT) == alone


def test_outer_joins_by_a_range_of_minutes(join):
    """The second half of both: three and a half minutes, and ten that rows may be late"""
    for kind, alone in (("left", [(3, 5, None)]), ("right", [(2, None, 5)])):
        run = join(210, 210, kind)
        assert run.row(LEFT, 1, 210) + run.row(LEFT, 3, 5) == []
        assert run.row(RIGHT, 1, 300) + run.row(RIGHT, 2, 5) == [(1, 210, 300)]
        assert run.row(RIGHT, 1, 450) == []
        assert run.row(LEFT, 1, 260) + run.row(LEFT, 1, 1800) == [(1, 260, 300), (1, 260, 450)]
        assert run.row(RIGHT, 0, 1800) == []
        assert run.until(1200 + NEXT) == alone


def evens(run, first, last, flipped=False):
    """Numbers with themselves as times; of the one side all, of the other those that are even."""
    found = []
    for number in range(first, last + 1):
        found += run.row(RIGHT if flipped else LEFT, number, number)
        if number % 2 == 0:
            found += run.row(LEFT if flipped else RIGHT, number, number)
    return found


@pytest.mark.parametrize(
    ("kind", "flipped"),
    [
        # StreamingOuterJoinSuite, "SPARK-26187 self left outer join should not return outer nulls for already matched rows"
        # StreamingFullOuterJoinSuite, "self full outer join"
        ("left", False),
        ("outer", False),
        # StreamingOuterJoinSuite, "SPARK-26187 self right outer join should not return outer nulls for already matched rows"
        ("right", True),
    ],
)
def test_a_stream_with_its_even_half(join, kind, flipped):
    run = join(5, 0, kind) if flipped else join(0, 5, kind)
    assert evens(run, 1, 5, flipped) == [(2, 2, 2), (4, 4, 4)]
    assert evens(run, 6, 10, flipped) == [(6, 6, 6), (8, 8, 8), (10, 10, 10)]
    assert run.until(5) == []
    assert evens(run, 11, 15, flipped) == [(12, 12, 12), (14, 14, 14)]
    assert run.until(9) == ([(1, None, 1), (3, None, 3)] if flipped else [(1, 1, None), (3, 3, None)])


def test_rows_of_days(join):
    """StreamingOuterJoinSuite, "SPARK-32148 stream-stream join regression on Spark 3.0.0": half a minute, seconds of two days"""
    day = 86_400
    run, found = join(30, 30, "left"), []
    for side, at in [
        (LEFT, 0),
        (LEFT, day),
        (LEFT, day + 3600),
        (RIGHT, day + 10),
        (RIGHT, day + 3599),
        (RIGHT, day + 7200),
    ]:
        found += run.row(side, "abc", at)
    found += run.until(day + 3480)
    expected = [("abc", 0, None), ("abc", day, day + 10), ("abc", day + 3600, day + 3599)]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_rows_that_come_as_others_go(join):
    """StreamingOuterJoinSuite, "SPARK-38684: outer join works correctly even if processing input rows and evicting state rows for same grouping key happens in the same micro-batch" """
    run = join(30, 30, "left")
    for left, right in ((0, 60), (3600, 3660)):
        assert run.row(LEFT, "abc", left) + run.row(RIGHT, "abc", right) == []
    assert run.until(0) == []
    assert run.row(LEFT, "abc", 5400) == []
    assert run.until(3600) == [("abc", 0, None)]
    assert run.row(RIGHT, "abc", 5410) == [("abc", 5400, 5410)]
    assert run.until(3660) == [("abc", 3600, None)]


@pytest.mark.parametrize("moves", [False, True])
def test_rows_that_have_a_partner(moves):
    """StreamingLeftSemiJoinSuite, "left semi join with watermark range condition": each left row with the first of its partners"""
    run = JoinSteps(moves, lambda a, b: a.join("unit", b, within=(5, 5), keep="first"))
    for side, rows in (
        (LEFT, [(1, 5), (3, 5)]),
        (RIGHT, [(1, 10), (2, 5), (1, 9)]),
        (LEFT, [(1, 7), (1, 30)]),
        (RIGHT, [(0, 30)]),
    ):
        for key, at in rows:
            run.row(side, key, at)
    found = run.until(20 + NEXT) + run.rest()
    assert [pair[:2] for pair in found] == [(1, 5), (1, 7)]


def test_rows_of_a_stream_with_its_even_half_that_have_a_partner(join):
    """StreamingLeftSemiJoinSuite, "self left semi join" """
    run = join(0, 5, keep="first")
    found = evens(run, 1, 15) + run.rest()
    assert sorted(pair[0] for pair in found) == [2, 4, 6, 8, 10, 12, 14]


@pytest.fixture(params=[False, True], ids=["stays", "moves"])
def windowed(request):
    """A join of what is in the same ten seconds."""
    return lambda kind="inner", keep="all": JoinSteps(
        request.param, lambda a, b: a.join("unit", b, TumblingWindow(10), kind=kind, keep=keep)
    )


def numbers(run, side, *numbers):
    return [row if row == "late" else row[0] for n in numbers for row in run.row(side, n, n)]


def test_windows_that_never_close(windowed):
    """StreamingInnerJoinSuite, "stream stream inner join on windows - without watermark" """
    run = windowed()
    steps = [(LEFT, 1), (RIGHT, 1), (LEFT, 25), (RIGHT, 25), (LEFT, 1), (LEFT, 5), (RIGHT, 5)]
    assert [numbers(run, side, n) for side, n in steps] == [[], [1], [], [25], [1], [], [5]]


def test_windows_that_close(windowed):
    """StreamingInnerJoinSuite, "stream stream inner join on windows - with watermark" """
    run = windowed()
    assert numbers(run, LEFT, 1) + numbers(run, RIGHT, 1) + numbers(run, LEFT, 25) == [1]
    assert run.until(15) == []
    assert numbers(run, RIGHT, 25, 1) == [25, "late"]
    assert numbers(run, LEFT, 5) == ["late"]


@pytest.mark.parametrize(
    ("kind", "alone"),
    [
        # StreamingOuterJoinSuite, "windowed left outer join"
        ("left", [(1, 1, None), (2, 2, None)]),
        # StreamingOuterJoinSuite, "windowed right outer join"
        ("right", [(6, None, 6), (7, None, 7)]),
        # StreamingFullOuterJoinSuite, "windowed full outer join"
        ("outer", [(1, 1, None), (2, 2, None), (6, None, 6), (7, None, 7)]),
    ],
)
def test_outer_joins_of_windows(windowed, kind, alone):
    run = windowed(kind)
    assert numbers(run, LEFT, 1, 2, 3, 4, 5) + numbers(run, RIGHT, 3, 4, 5, 6, 7) == [3, 4, 5]
    assert numbers(run, LEFT, 21) + numbers(run, RIGHT, 22) == []
    assert run.until(11) == alone
    assert numbers(run, LEFT, 22) == [22]
    assert numbers(run, LEFT, 1) + numbers(run, RIGHT, 5) == ["late", "late"]


def test_rows_of_windows_that_have_a_partner(windowed):
    """StreamingLeftSemiJoinSuite, "windowed left semi join" """
    run = windowed(keep="first")
    assert numbers(run, LEFT, 1, 2, 3, 4, 5) + numbers(run, RIGHT, 3, 4, 5, 6, 7) == []
    assert numbers(run, LEFT, 21) + numbers(run, RIGHT, 22) == []
    assert [row[0] for row in run.until(11)] == [3, 4, 5]
    assert numbers(run, LEFT, 22) == []
    assert numbers(run, LEFT, 1) + numbers(run, RIGHT, 5) == ["late", "late"]
    assert [row[0] for row in run.rest()] == [22]


def test_keys_of_two_parts(windowed):
    """StreamingOuterJoinSuite, "left-outer: joining non-nullable left join key with nullable right join key" """
    run, found = windowed("left"), []
    for side, times in ((LEFT, range(1, 6)), (RIGHT, range(3, 7)), (LEFT, [21]), (RIGHT, [22])):
        found += [row for at in times for row in run.row(side, (1, at), at)]
    assert found == [((1, at), at, at) for at in (3, 4, 5)]
    assert run.until(11) == [((1, 1), 1, None), ((1, 2), 2, None)]


def test_three_streams():
    """StreamingInnerJoinSuite, "join between three streams" """
    rows = [
        (side, key, (key * by, 0))
        for side, by, keys in (("a", 2, (1, 5)), ("b", 3, (1, 5, 10)), ("c", 5, (5, 10)))
        for key in keys
    ]
    found = join_run(rows, lambda t, *sides: t.join("out", sides, TumblingWindow(10), time=lambda value: value[-1]))
    assert found == [(5, (10, 15, 25))]
