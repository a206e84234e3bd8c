from __future__ import annotations

import pytest


def _schedule(folder, seconds=1.0):
    from bench.rescale.topology import Schedule

    return Schedule(keys=5, rate=100.0, seconds=seconds, folder=str(folder))


def test_each_key_comes_once_then_after_a_rest_drawn_ones_when_they_are_due(tmp_path):
    from bench.rescale.topology import REST, drawn

    schedule = _schedule(tmp_path)
    assert schedule.take(3, 10.0) == [("0", 0), ("1", 1), ("2", 2)]
    assert schedule.take(3, 10.0) == [("3", 3), ("4", 4)]
    assert schedule.take(3, 10.0) == []
    assert schedule.start == 10.0 + REST
    rows = schedule.take(100, schedule.start + 0.025)
    assert rows == [(str(key), 5 + i) for i, key in enumerate(drawn(5)[:3])]
    assert schedule.take(100, schedule.start + 0.025) == []
    assert schedule.due() == pytest.approx(schedule.start + 0.03)
    assert len(schedule.take(2, schedule.start + 0.9)) == 2  # the others are late, not lost
    assert schedule.take(2, schedule.start + 1.1) is None


def test_after_a_restart_what_was_due_meanwhile_comes_late(tmp_path):
    first = _schedule(tmp_path)
    first.take(5, 10.0)
    first.take(1, 10.0)
    assert len(first.take(100, first.start + 0.095)) == 10
    first.save()
    second = _schedule(tmp_path)
    assert second.due() == pytest.approx(first.start + 0.1)
    later = first.start + 5.0
    rows = second.take(1000, later)
    assert rows[0][1] == 15
    assert len(rows) == 500 - 10 + 1
    assert second.take(1000, later + 0.9)  # it goes on for a second from when it was read again
    assert second.take(1000, later + 1.1) is None
