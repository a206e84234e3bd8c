"""Costs of changes are learnt from those that were measured; what they do not tell stays as assumed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.messages.change_record import ChangeRecord
from esault.report import Change, Latency, Report, RootCounts, iso
from esault.sim.change_costs import UNKNOWN, ChangeCost, learnt_timing, slowest
from esault.sim.model import Timing

ASSUMED = Timing(start=0.3, start_each=0.05, switch=0.0, move=0.02, bytes_per_second=50e6)


def test_without_changes_all_is_as_assumed():
    assert learnt_timing([], ASSUMED) == ASSUMED


@given(
    st.floats(0.001, 2),
    st.floats(0, 0.5),
    st.floats(0, 0.3),
    st.floats(0, 0.1),
    st.lists(st.integers(1, 20), min_size=2, max_size=9, unique=True),
)
def test_the_lines_that_growths_lie_on_are_found(first, more, held, held_more, sizes):
    costs = [ChangeCost(size, first + more * (size - 1), held + held_more * size) for size in sizes]
    found = learnt_timing(costs, ASSUMED)
    assert found.start == pytest.approx(first, abs=1e-6)
    assert found.start_each == pytest.approx(more, abs=1e-6)
    assert found.move == pytest.approx(held, abs=1e-6)
    assert found.move_each == pytest.approx(held_more, abs=1e-6)
    assert (found.switch, found.bytes_per_second) == (ASSUMED.switch, ASSUMED.bytes_per_second)
    for size in sizes:
        assert found.preparation(size) == pytest.approx(first + more * (size - 1), abs=1e-5)
        assert found.hold(size) == pytest.approx(held + held_more * size, abs=1e-5)


def test_growths_of_one_size_tell_the_first_ones_time_beside_what_is_assumed_for_more():
    found = learnt_timing([ChangeCost(3, 0.5, 0.0), ChangeCost(3, 0.7, 0.0)], ASSUMED)
    assert (found.start, found.start_each) == (pytest.approx(0.5), 0.05)
    assert found.preparation(3) == pytest.approx(0.6)


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 5)), min_size=1))
def test_nothing_takes_less_than_no_time(measured):
    found = learnt_timing([ChangeCost(size, prepared, 0.0) for size, prepared in measured], ASSUMED)
    assert found.start >= 0 and found.start_each >= 0 and found.move >= 0 and found.move_each >= 0


def test_shrinking_has_its_own_time():
    found = learnt_timing([ChangeCost(0, 0.04, 0.01), ChangeCost(0, 0.06, 0.03)], ASSUMED)
    assert (found.start, found.switch, found.move) == (0.3, pytest.approx(0.05), pytest.approx(0.02))
    assert found.preparation(0) == pytest.approx(0.05)


def test_the_time_after_which_another_change_may_begin_is_learnt():
    found = learnt_timing([ChangeCost(1, 0.1, 0.0, finished=each) for each in (0.05, 0.06, 0.3)], ASSUMED)
    assert found.finish == pytest.approx(0.06)


def test_the_time_of_a_byte_is_learnt_where_many_have_moved():
    few = [ChangeCost(1, 0.1, 0.03 + size / 50e6, size) for size in (1000, 2000)]
    assert learnt_timing(few, ASSUMED).bytes_per_second == 50e6
    many = [ChangeCost(1, 0.1, 0.03 + size / 10e6, size) for size in (1_000_000, 5_000_000)]
    found = learnt_timing(many, ASSUMED)
    assert (found.bytes_per_second, found.move) == (pytest.approx(10e6), pytest.approx(0.03))


def test_records_and_reports_say_the_same():
    record = ChangeRecord(
        at=5.0,
        unit="count",
        kind="rescale",
        before=2,
        after=6,
        reason="",
        policy="auto",
        moved_keys=10,
        moved_bytes=4096,
        held=0.25,
        seconds=1.0,
        prepared=0.5,
    )
    change = Change(5.0, "count", "rescale", 2, 6, "", "auto", 10, 4096, 250.0, 1000.0, 500.0)
    (told,) = Report(
        "words", "actors", iso(0), 12.0, "drained", {}, Latency(), RootCounts(), changes=[change]
    ).as_dict()["changes"]
    assert ChangeCost.of_record(record) == ChangeCost.of_report(told) == ChangeCost(4, 0.5, 0.25, 4096, 0.25)
    assert ChangeCost.of_report({**told, "kind": "move", "to": 2}).started == 1
    assert ChangeCost.of_report({**told, "to": 1}).started == 0


def test_the_first_newcomer_takes_time_however_steep_the_line_is():
    # A line through these has no time left at one newcomer.
    found = learnt_timing([ChangeCost(7, 0.16, 0.06), ChangeCost(9, 1.02, 0.4)], ASSUMED)
    assert 0 < found.start == found.start_each
    assert 7 * found.start < 9 * found.start < 1.1


def test_a_slow_change_is_the_slowest_of_those_that_were_measured():
    costs = [ChangeCost(1, each, 0.1) for each in (0.2, 0.3, 1.7)]
    timing = Timing(start=0.4, move=0.05, move_each=0.05)
    assert slowest(costs, timing) == pytest.approx(1.8 / 0.5)
    assert slowest([*costs, ChangeCost(0, 99.0, 99.0)], timing) == pytest.approx(1.8 / 0.5)  # what stops starts none


def test_of_few_changes_none_is_a_slow_one():
    assert slowest([], ASSUMED) == slowest([ChangeCost(1, 0.3, 0.02)], ASSUMED) == UNKNOWN
    assert slowest([ChangeCost(1, 6.0, 0.02)], Timing(start=0.5, move=0.1)) == pytest.approx(6.02 / 0.6)


def test_no_change_is_quicker_in_a_slow_run():
    assert slowest([ChangeCost(1, 0.1, 0.0)] * 3, Timing(start=0.5)) == 1.0
    assert ASSUMED.times(2.0) == Timing(start=0.6, start_each=0.1, switch=0.0, move=0.04, bytes_per_second=50e6)
    assert ASSUMED.times(1.0) == ASSUMED
