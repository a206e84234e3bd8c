"""The public contract of spouts finds what breaks a law, by name of the law; `tests/contract/` has every source in the box keep it."""

from __future__ import annotations

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


def test_a_spout_that_keeps_it_is_counted():
    assert check_spout(Numbers) == 20


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
    ],
)
def test_what_breaks_it_is_found_by_name(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_spout(broken)
