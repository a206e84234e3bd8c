"""The public contract of spouts finds what breaks a law, by name of the law; `tests/contract/` has every source in the box keep it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from esault import EndOfStream, Spout
from esault.testing.contract import check_spout


class Numbers(Spout):
    parallel = True

    def __init__(self, n=20):
        self.n, self.next = n, 0

    def open(self, context):
        self.part, self.parts = context.part, context.parts

    def read(self, limit):
        if self.next >= self.n:
            raise EndOfStream
        rows = []
        while self.next < self.n and len(rows) < limit:
            if self.next % self.parts == self.part:
                rows.append((self.next, self.next))
            self.next += 1
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class SeeksLate(Numbers):
    """As `FileTail` did: it seeks with the first read, and says where it stands before."""

    sought = None
    at = 0

    def read(self, limit):
        if self.sought is not None:
            self.next, self.sought = self.sought, None
        rows = super().read(limit)
        self.at = self.next
        return rows

    def position(self):
        return self.at

    def seek(self, position):
        self.sought = position


class SeeksShort(Numbers):
    def seek(self, position):
        self.next = max(0, position - 1)
        self.told = position

    def position(self):
        told, self.told = getattr(self, "told", None), None
        return self.next if told is None else told


class GivesMore(Numbers):
    def read(self, limit):
        return super().read(limit + 1)


class TurnsWithItsLimit(Numbers):
    def read(self, limit):
        return super().read(limit)[::-1]


class CannotTravel(Numbers):
    def position(self):
        return super().position(), lambda: None


class AllInEachPart(Numbers):
    def open(self, context):
        self.part, self.parts = 0, 1


class MovesWhenAsked(Numbers):
    def progress(self):
        self.next += self.next == 7
        return


class ComesBefore(Numbers):
    def next_due(self):
        return self.context.now() + 1000


class NamesNoTime(Numbers):
    def next_due(self):
        return "soon"


class NothingYet(Numbers):
    def read(self, limit):
        return super().read(limit) if self.next < self.n else None


class Acknowledged(Spout):
    """A queue gives all again that was not acknowledged; its positions name messages for good."""

    seekable = False

    def __init__(self):
        self.next, self.known = 0, -1

    def read(self, limit):
        if self.next >= 20:
            raise EndOfStream
        given = range(self.next, min(20, self.next + limit))
        self.next = given.stop
        return [(n, n) for n in given if n > self.known]

    def position(self):
        return self.next - 1

    def commit(self, position):
        if not self.next:
            self.next, self.known = 0, position


class Named(Acknowledged):
    """Its positions are of a connection; messages have names."""

    def commit(self, position):
        pass

    def read(self, limit):
        self.rows = super().read(limit)
        return self.rows

    def row_ids(self):
        return [f"m{n}" for n, _ in self.rows]


class GivesAllAgain(Acknowledged):
    def commit(self, position):
        pass


class LeavesOneMoreOut(Acknowledged):
    def commit(self, position):
        super().commit(position + 1)


class NamesThemAnew(Named):
    made = itertools.count()

    def __init__(self):
        super().__init__()
        self.number = next(self.made)

    def row_ids(self):
        return [f"{self.number}-{n}" for n, _ in self.rows]


class NamesTooFew(Named):
    def row_ids(self):
        return super().row_ids()[:-1]


class Arrays(Numbers):
    def read(self, limit):
        return [(key, np.arange(value, value + 3)) for key, value in super().read(limit)]


class ArraysByLimit(Arrays):
    def read(self, limit):
        rows = super().read(limit)
        return [(key, value + 1) for key, value in rows] if limit == 1 else rows


def test_rows_may_be_arrays():
    assert check_spout(Arrays) == 20
    with pytest.raises(AssertionError, match="the same rows come whatever the limits are"):
        check_spout(ArraysByLimit)


def test_of_one_that_may_give_all_again_nothing_may_be_missing():
    assert check_spout(GivesAllAgain, repeats=True) == 20
    with pytest.raises(AssertionError, match="all rows behind it come"):
        check_spout(LeavesOneMoreOut, repeats=True)


@pytest.mark.parametrize("spout", [Numbers, Acknowledged, Named])
def test_a_spout_that_keeps_it_is_counted(spout):
    assert check_spout(spout) == 20


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (SeeksLate, "right after seek the position is what was sought"),
        (SeeksShort, "come the rows that came behind that position"),
        (GivesMore, r"read\(1\) gave 2 rows"),
        (TurnsWithItsLimit, "the same rows come whatever the limits are"),
        (CannotTravel, "a position can travel"),
        (AllInEachPart, "parts have each row once"),
        (MovesWhenAsked, "the same rows come whatever the limits are"),
        (ComesBefore, "said that there is nothing before"),
        (NamesNoTime, "seconds since the epoch, or None"),
        (NothingYet, r"return \[\] when there is nothing yet"),
        (GivesAllAgain, "rows before it come not, or by row_ids with their names"),
        (LeavesOneMoreOut, "rows before it come not, or by row_ids with their names"),
        (NamesThemAnew, "rows before it come not, or by row_ids with their names"),
        (NamesTooFew, "row_ids names each row of the last read"),
    ],
)
def test_what_breaks_it_is_found_by_name(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_spout(broken)
