from __future__ import annotations

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources.items import Items
from esault.sources.lines import Lines
from esault.sources.paced import Paced
from esault.topology.builder import Topology
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout, has_position

START = 1000.0


def opened(rate, rows=100, part=0, parts=1, **arguments):
    """The spout and its clock, a list of one number."""
    clock = [START]
    spout = Paced(Items([(i, i) for i in range(rows)]), rate, **arguments)
    spout.check()
    spout.open(Context("paced", now=lambda: clock[0], part=part, parts=parts))
    return spout, clock


def test_only_what_is_due_is_offered_and_it_says_when_it_was_due():
    spout, clock = opened(10)
    assert spout.read(100) == [(0, 0)]
    assert spout.due() == START
    assert spout.read(100) == []
    assert spout.due() is None
    clock[0] += 0.35
    assert spout.read(2) == [(1, 1), (2, 2)]
    assert spout.due() == pytest.approx(START + 0.1)
    assert spout.read(100) == [(3, 3)]
    assert spout.due() == pytest.approx(START + 0.3)


def test_time_starts_with_the_first_read():
    spout, clock = opened(10)
    clock[0] += 500
    assert len(spout.read(100)) == 1


def test_what_was_late_keeps_the_time_at_which_it_was_due():
    spout, clock = opened(10)
    spout.read(1)
    clock[0] += 5
    assert len(spout.read(20)) == 20
    assert spout.due() == pytest.approx(START + 0.1)
    clock[0] += 5
    assert len(spout.read(20)) == 20
    assert spout.due() == pytest.approx(START + 2.1)
    assert len(spout.read(1000)) == 59


def test_burst_bounds_one_read_and_loses_nothing():
    spout, clock = opened(10, burst=3)
    spout.read(1)
    clock[0] += 1
    assert [len(spout.read(100)) for _ in range(5)] == [3, 3, 3, 1, 0]


def test_parts_share_the_rate_and_take_turns():
    found = []
    for part in range(4):
        spout, clock = opened(8, part=part, parts=4)
        while clock[0] < START + 2:
            if spout.read(1):
                found.append(spout.due() - START)
            else:
                clock[0] += 0.01
    assert sorted(found) == pytest.approx([i / 8 for i in range(16)], abs=0.011)


def test_it_ends_when_the_spout_within_does():
    spout, clock = opened(10, rows=3)
    clock[0] += 60
    spout.read(1)
    clock[0] += 60
    assert len(spout.read(100)) == 2
    with pytest.raises(EndOfStream):
        spout.read(100)


def test_a_spout_within_that_has_nothing_yet_gets_its_turns_later():
    class Slow(Spout):
        rows = []

        def read(self, limit):
            rows, self.rows = self.rows[:limit], self.rows[limit:]
            return rows

    clock = [START]
    slow = Slow()
    spout = Paced(slow, 10)
    spout.open(Context("paced", now=lambda: clock[0]))
    assert spout.read(10) == []
    assert spout.due() is None
    slow.rows = [(1, 1), (2, 2)]
    clock[0] += 1
    assert spout.read(10) == [(1, 1), (2, 2)]
    assert spout.due() == START


def test_it_goes_on_after_a_restart_if_the_spout_within_can():
    spout, clock = opened(10)
    assert has_position(spout)
    spout.read(1)
    clock[0] += 1
    spout.read(4)
    again, _ = opened(10)
    again.seek(spout.position())
    assert again.read(10) == [(5, 5)]
    assert not has_position(Paced(Lines(), 10))
    assert type(spout).__name__ == type(Paced(Lines(), 10)).__name__ == "Paced"


def test_it_is_parallel_if_the_spout_within_is():
    assert Paced(Items([]), 10).parallel
    assert not Paced(Lines(), 10).parallel


def test_the_other_hooks_are_those_of_the_spout_within():
    class Within(Items):
        calls = ()

        def commit(self, position):
            self.calls += (position,)

        def close(self):
            self.calls += ("closed",)

    within = Within([(1, 1), (2, 2)])
    spout = Paced(within, 10)
    spout.open(Context("paced", now=lambda: START))
    assert within.context is spout.context
    spout.read(1)
    assert spout.progress() == (1, 2)
    spout.commit(1)
    spout.close()
    assert within.calls == (1, "closed")
    with pytest.raises(SourceError, match="Items: row 0 is 3"):
        Paced(Items([3]), 10).check()


def test_what_the_spout_within_took_before_an_orderly_stop_waits_no_longer():
    class Within(Items):
        begun = None

        def halt(self):
            return "rest"

        def begin_with(self, rest):
            self.begun = rest

    within = Within([(i, i) for i in range(9)])
    spout = Paced(within, 10)
    spout.open(Context("paced", now=lambda: START))
    assert spout.lag() == 0
    assert spout.read(5) == [(0, 0)]
    assert spout.halt() == "rest"
    assert spout.read(5) == [(i, i) for i in range(1, 6)]
    assert spout.due() is None
    assert spout.row_ids() is None
    spout.begin_with("rest")
    assert within.begun == "rest"


def test_a_topology_takes_it():
    t = Topology("paced")
    t.spout("with", Paced(Items([(1, 1)]), 10), parallelism=2)
    t.spout("without", Paced(Lines(), 10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 10), "Paced: 3 is no spout; pass an object of a class derived from Spout"),
        ((Items, 10), r"Paced: <class .*> is no spout; pass Items\(\.\.\.\)"),
        ((Items([]), 0), "Paced: rate=0: write tuples per second as a number above 0"),
        ((Items([]), "x"), "Paced: rate='x'"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_remedy(arguments, message):
    with pytest.raises(TopologyError, match=message):
        Paced(*arguments)


@pytest.mark.parametrize("burst", [0, -1, 1.5, True])
def test_a_wrong_burst_is_refused(burst):
    with pytest.raises(TopologyError, match="Paced: burst="):
        Paced(Items([]), 10, burst=burst)
