"""What Kafka Streams' own tests say of sliding windows; the facts alone, times in ms as there.

A sliding window of Kafka Streams is of a time difference, both ends included, and stands only where a record begins or ends one. Ours
begin at every time and end before one: those of a difference of 10 are 11 long, and of ours those that Kafka Streams has are looked at.
"""

from __future__ import annotations

import pytest
from steps import Rows
from test_joins import ONE_BY_ONE

from esault import Bolt, Topology, by_key
from esault import aggregates as agg
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SlidingWindow

# Kafka Streams: KStreamSlidingWindowAggregateTest -----------------------------------------------------------

SMALL = [(0, 1), (5, 2), (6, 3), (3, 4), (13, 5), (10, 6), (70, 7)]
LARGE = [(0, 1), (5, 3), (6, 4), (3, 2), (13, 6), (10, 5), (4, 7), (2, 8), (15, 9)]
EARLY = {0: "123456", 1: "23456", 4: "2356", 6: "356", 7: "56", 11: "5"}


def later(by, rows):
    return [(at + by, n) for at, n in rows]


@pytest.mark.parametrize(
    ("rows", "difference", "grace", "closed", "left"),
    [
        # testAggregateSmallInput
        (
            [(10, 1), (10, 2), (14, 3), (15, 4), (20, 5), (22, 6), (30, 7)],
            10,
            5,
            {0: "12", 4: "123", 5: "1234", 10: "12345", 11: "345", 12: "3456"},
            {15: "456", 16: "56", 20: "567", 21: "67", 23: "7"},
        ),
        # testReduceSmallInput
        (
            [(10, 1), (14, 2), (15, 3), (22, 4), (26, 5), (30, 6)],
            10,
            5,
            {0: "1", 4: "12", 5: "123", 11: "23", 12: "234"},
            {15: "34", 16: "45", 20: "456", 23: "56", 27: "6"},
        ),
        # testEarlyRecordsSmallInput, testEarlyNoGracePeriodSmallInput
        (SMALL, 50, 0, EARLY, {20: "7"}),
        # testEarlyRecordsRepeatedInput
        (
            [(0, 1), (2, 2), (4, 3), (0, 4), (2, 5), (2, 6), (0, 7), (7, 8)],
            5,
            0,
            {0: "1234567", 1: "2356"},
            {2: "23568", 3: "38", 5: "8"},
        ),
        # testEarlyRecordsLargeInput
        (
            LARGE,
            10,
            50,
            {},
            {
                0: "1342578",
                1: "342578",
                3: "342657",
                4: "34657",
                5: "34659",
                6: "4659",
                7: "659",
                11: "69",
                14: "9",
            },
        ),
        # testNoGracePeriodSmallInput
        (
            later(100, SMALL[:-1]),
            50,
            0,
            {50: "1", 55: "12", 56: "1234"},
            {63: "123456", 101: "23456", 104: "2356", 106: "356", 107: "56", 111: "5"},
        ),
        # testEarlyNoGracePeriodLargeInput
        (
            LARGE,
            10,
            0,
            {0: "1342", 1: "342", 3: "342657", 4: "34657"},
            {5: "34659", 6: "4659", 7: "659", 11: "69", 14: "9"},
        ),
        # testNoGracePeriodLargeInput
        (
            later(100, LARGE),
            10,
            0,
            {90: "1", 95: "13", 96: "1342", 101: "342", 103: "342657", 104: "34657"},
            {105: "34659", 106: "4659", 107: "659", 111: "69", 114: "9"},
        ),
    ],
)
def test_sliding_windows_of_a_time_difference(steps, rows, difference, grace, closed, left):
    w = steps(SlidingWindow(difference + 1, 1), Rows)
    found, latest = [], 0
    for at, n in rows:
        w.give("A", at, n)
        latest = max(latest, at)
        found += w.watermark(latest - grace)
    for before, expected in ((found, closed), (w.end(), left)):
        contents = {start: "".join(map(str, rows)) for _, (start, _, rows) in before}
        assert {start: contents.get(start) for start in expected} == expected


LETTERS = "ABCDEFGHIJKLMNOPQRSTUV"
TIMES = [10, 15, 16, 18, 30, 40, 55, 56, 58, 58, 62, 63, 63, 63, 76, 77, 80, 2, 3, 5, 8, 181]


def test_sliding_windows_of_records_in_any_order(steps):
    """testAggregateRandomInput: letters in the order of the alphabet, since theirs come in any; here the last ones come first."""
    w = steps(SlidingWindow(11, 1), Rows)
    for letter, at in reversed(list(zip(LETTERS, TIMES))):
        w.give("A", at, letter)
    found = {start: "".join(sorted(rows)) for _, (start, _, rows) in w.end()}
    first = {0: "ARSTU", 3: "ASTU", 4: "ATU", 5: "ABTU", 6: "ABCU", 8: "ABCDU", 9: "ABCD", 11: "BCD", 16: "CD", 17: "D"}
    second = {20: "E", 30: "EF", 31: "F", 45: "G", 46: "GH", 48: "GHIJ", 52: "GHIJK", 53: "GHIJKLMN", 56: "HIJKLMN"}
    third = {57: "IJKLMN", 59: "KLMN", 63: "LMN", 66: "O", 67: "OP", 70: "OPQ", 77: "PQ", 78: "Q", 171: "V"}
    expected = {**first, **second, **third}
    assert {start: found[start] for start in expected} == expected


OF_KEYS = {
    "A": ([(10, 1), (20, 2), (22, 3), (15, 4)], {0: "1", 5: "14", 10: "124", 11: "24", 12: "234", 16: "23", 21: "3"}),
    "B": (
        [(12, 1), (13, 2), (18, 3), (19, 4), (25, 5), (14, 6)],
        {2: "1", 3: "12", 4: "126", 8: "1236", 9: "12346", 13: "2346", 14: "346", 15: "345", 19: "45", 20: "5"},
    ),
    "C": (
        [(11, 1), (15, 2), (16, 3), (21, 4), (23, 5)],
        {1: "1", 5: "12", 6: "123", 11: "1234", 12: "234", 13: "2345", 16: "345", 17: "45", 22: "5"},
    ),
    "D": ([(11, 4), (12, 2), (29, 3), (16, 5)], {1: "4", 2: "42", 6: "425", 12: "25", 13: "5", 19: "3"}),
}


def test_sliding_windows_of_several_keys(steps):
    """testAggregateLargeInput, each new result: the last one of each window, none of which is late with a grace of 50."""
    w = steps(SlidingWindow(11, 1), Rows)
    for key, (rows, _) in OF_KEYS.items():
        for at, n in rows:
            assert w.give(key, at, n) == []
    found = {(key, start): "".join(map(str, rows)) for key, (start, _, rows) in w.end()}
    expected = {(key, start): rows for key, (_, windows) in OF_KEYS.items() for start, rows in windows.items()}
    # of what is in two windows of D, and of B, the order is that in which the records came
    assert {each: "".join(sorted(found[each])) for each in expected} == {
        each: "".join(sorted(rows)) for each, rows in expected.items()
    }


class WindowInKey(Bolt):
    """The window is part of the key, as it is there."""

    def process(self, key, value):
        self.emit((key, value["start"]), value["n"])


def test_sliding_windows_of_two_streams_that_are_joined():
    """testJoin: how many records of each side are in the windows that both have, in the end."""
    left = [("A", 10), ("B", 11), ("C", 12), ("A", 15), ("B", 16), ("C", 19)]
    right = [("A", 10), ("C", 12), ("A", 15), ("B", 16), ("C", 17)]
    t = Topology("windows")
    sides = []
    for name, rows in (("left", left), ("right", right)):
        spout = t.spout(name, Items([(key, {"at": at}) for key, at in rows]), time=lambda v: v["at"], lateness=100)
        windows = spout.aggregate(f"{name}-windows", {"n": agg.count()}, SlidingWindow(11, 1))
        sides.append(windows.bolt(f"{name}-keyed", WindowInKey, by_key()))
    sides[0].join_tables("out", sides[1])
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    last = dict(local.emitted("out"))
    expected = {
        ("A", 0): (1, 1),
        ("C", 2): (1, 1),
        ("A", 11): (1, 1),
        ("A", 5): (2, 2),
        ("B", 6): (2, 1),
        ("C", 13): (1, 1),
    }
    assert {each: last[each] for each in expected} == expected
