"""The bolt of joins by window by itself: which tuples of each side are put together, and what stands alone at the end."""

from __future__ import annotations

import pytest

from esault.topology.join import Join


class Joined(Join):
    def __init__(self, kind, names="lr", keep="all"):
        super().__init__(kind, names, keep, [lambda value: value[1]] * len(names))
        self.key, self.out = "k", []

    def emit(self, key, value, stream=None):
        self.out.append(tuple(row and row[0] for row in value))

    def on(self, *rows):
        """Rows are (side, name, time), in the order in which they come."""
        for side, name, time in rows:
            self.process_stream(side, "k", (name, time))
        self.__setstate__(self.__getstate__())
        self.finish()
        return self.out


def test_with_three_sides_a_row_goes_out_when_the_last_of_them_is_there():
    rows = [("x", "x1", 1), ("y", "y1", 2), ("x", "x2", 3), ("z", "z1", 4), ("y", "y2", 5)]
    both = [("x1", "y1", "z1"), ("x2", "y1", "z1")]
    assert Joined("inner", "xyz").on(*rows[:4]) == both
    assert Joined("inner", "xyz").on(*rows) == [*both, ("x1", "y2", "z1"), ("x2", "y2", "z1")]


@pytest.mark.parametrize(("keep", "found"), [("first", ("l2", "r1")), ("last", ("l1", "r3"))])
def test_of_each_side_the_earliest_or_latest_counts_and_of_equal_ones_that_which_came_first_or_last(keep, found):
    rows = [("l", "l1", 5), ("l", "l2", 2), ("r", "r1", 3), ("r", "r2", 3), ("l", "l3", 4), ("r", "r3", 3)]
    assert Joined("inner", keep=keep).on(*rows) == [found]


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("inner", [], []),
        ("left", [("l", None)], []),
        ("right", [], [(None, "r")]),
        ("outer", [("l", None)], [(None, "r")]),
    ],
)
@pytest.mark.parametrize("keep", ["all", "first"])
def test_a_side_without_a_partner_goes_out_at_the_end_if_the_kind_says_so(kind, left, right, keep):
    assert Joined(kind, keep=keep).on(("l", "l", 1)) == left
    assert Joined(kind, keep=keep).on(("r", "r", 1)) == right


def test_state_as_it_was_written_with_two_sides_is_read():
    old = Joined("inner")
    old.__setstate__({"left": [("l", 1)], "right": []})
    assert old.on(("r", "r", 2)) == [("l", "r")]
