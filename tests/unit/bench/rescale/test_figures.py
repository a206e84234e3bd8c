from __future__ import annotations

import json

import pytest

np = pytest.importorskip("numpy")


def _rows(*rows):
    """(key, count, due, out, owner), index by index."""
    from bench.rescale.figures import Rows

    key, count, due, out, owner = (np.array(column) for column in zip(*rows))
    return Rows(np.arange(len(rows)), key, count, due, out, owner)


def test_what_is_read_is_what_was_recorded(tmp_path):
    from bench.rescale.figures import counts, read
    from bench.rescale.topology import SHIFT, drawn

    (tmp_path / "offered.json").write_text(json.dumps({"next": 4, "start": 100.0, "keys": 2, "rate": 10.0}))
    third, fourth = drawn(2)[:2]
    seen = [1, 1]
    packed = [0 << SHIFT | 1, 1 << SHIFT | 1]
    for index, key in ((2, third), (3, fourth)):
        seen[key] += 1
        packed.append(index << SHIFT | seen[key])
    for name, part, stamps in (
        ("a", packed[:1] + packed[3:], [(99.0, 1), (100.3, 1)]),
        ("b", packed[1:3], [(100.5, 2)]),
    ):
        np.array(part, dtype="u8").tofile(tmp_path / f"{name}.rows")
        np.array(stamps, dtype="f8").tofile(tmp_path / f"{name}.stamps")
    rows, offered = read(tmp_path)
    assert list(rows.index) == [0, 1, 2, 3]
    assert list(rows.key) == [0, 1, third, fourth]
    assert list(rows.owner) == [0, 1, 1, 0]
    assert list(rows.due[2:]) == [100.0, 100.1]
    assert list(rows.out) == [99.0, 100.5, 100.5, 100.3]
    assert counts(rows, offered["next"]) == {"offered": 4, "lost": 0, "repeated": 0, "wrong_counts": 0}


def test_a_tuple_that_is_missing_twice_there_or_miscounted_is_found():
    from bench.rescale.figures import Rows, counts

    def of(index, key, count):
        return Rows(np.array(index), np.array(key), np.array(count), None, None, None)

    assert counts(of([0, 1, 2], [7, 8, 7], [1, 1, 2]), 4)["lost"] == 1
    assert counts(of([0, 1, 1], [7, 8, 8], [1, 1, 2]), 2)["repeated"] == 1
    fresh = counts(of([0, 1, 2], [7, 8, 7], [1, 1, 1]), 3)  # key 7 began anew
    assert (fresh["lost"], fresh["repeated"], fresh["wrong_counts"]) == (0, 0, 1)


def test_keys_move_when_they_are_processed_elsewhere_afterwards():
    from bench.rescale.figures import movers

    rows = _rows(
        (1, 1, 0.0, 0.1, 0),
        (2, 1, 0.0, 0.1, 0),
        (3, 1, 0.0, 0.1, 0),
        (1, 2, 1.5, 1.6, 0),  # carried or processed before the hand-over: says nothing
        (1, 3, 3.0, 3.1, 5),
        (2, 2, 3.0, 3.1, 0),
        (1, 4, 9.0, 9.1, 0),  # a later change
    )
    assert list(movers(rows, began=1.0, ended=2.0, until=8.0)) == [1, 0, -1, 1, 1, 0, 1]


def test_windows_before_a_change_have_its_length():
    from bench.rescale.figures import windows

    assert np.allclose(windows(0.0, 1.0, 0.3), [(0.1, 0.4), (0.4, 0.7), (0.7, 1.0)])
    assert windows(0.0, 1.0, 5.0) == [(0.0, 1.0)]


def test_latency_around_a_change_is_compared_with_windows_of_the_same_length():
    from bench.rescale.figures import AFTER, BEFORE, around

    # a tuple each 10 ms, 1 ms late; during the change 4 ms, and once before it 3 ms
    due = np.arange(0.0, 4.0, 0.01) + 0.001
    began, ended = 2.0, 2.0 + 0.5 - BEFORE - AFTER
    late = np.where((due >= began - BEFORE) & (due < ended + AFTER), 0.004, 0.001)
    late[(due > 0.6) & (due < 0.7)] = 0.003
    rows = _rows(*[(0, 1, d, d + x, 0) for d, x in zip(due, late)])
    found = around(rows, rows.index >= 0, 0.0, began, ended)
    assert found["seconds"] == pytest.approx(0.5)
    assert found["quiet_windows"] == 3
    assert found["before"]["p99"] == pytest.approx(1.0)
    assert found["during"]["p99"] == pytest.approx(4.0)
    assert found["after"]["p99"] == pytest.approx(1.0)
    assert found["ratio"] == pytest.approx(4.0)
    assert found["quiet_ratio"] == pytest.approx(3.0)


def test_a_stop_is_silence_and_tuples_that_are_late():
    from bench.rescale.figures import stopped

    # due each 100 ms; nothing comes out between 1.0 and 2.0, then all that waited
    due = np.arange(0.0, 3.0, 0.1)
    out = np.where((due >= 1.0) & (due < 2.0), 2.0, due) + 0.001
    found = stopped(_rows(*[(0, 1, d, o, 0) for d, o in zip(due, out)]), 1.0, 9.0)
    assert found["silent_ms"] == pytest.approx(1100)
    assert found["worst_ms"] == pytest.approx(1001)
    assert found["late"] == 8
    assert found["late_for_s"] == pytest.approx(1.001)


def test_a_time_line_has_the_worst_of_each_moment_for_moved_keys_and_others():
    from bench.rescale.figures import timeline

    rows = _rows((0, 1, 10.01, 10.02, 0), (0, 2, 10.02, 10.05, 0), (1, 1, 10.06, 10.16, 0))
    points = timeline(rows, np.array([0, 0, 1]), 10.0, 0.0, 0.1)
    assert points == [(0.0, pytest.approx(30.0), 0.0), (0.05, 0.0, pytest.approx(100.0))]


def test_a_stream_that_does_not_keep_up_is_behind():
    from bench.rescale.figures import behind

    due = np.arange(0.0, 2.0, 0.01)
    rows = _rows(*[(0, 1, d, 1.5 * d, 0) for d in due])
    assert behind(rows, 1.5) == pytest.approx(467, abs=5)  # of the last 200 ms
    assert behind(rows, 99.0) == 0.0
