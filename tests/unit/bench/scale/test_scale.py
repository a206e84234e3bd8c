"""What `bench scale` reckons with: the server that sleeps, even keys, rates in the steady part, efficiency."""

from __future__ import annotations

from collections import Counter

import psutil
import pytest


class Clock:
    """Each sleep takes longer than asked for."""

    def __init__(self, late):
        self.now, self.late, self.sleeps = 0.0, late, 0

    def sleep(self, seconds):
        self.sleeps += 1
        self.now += seconds + self.late

    def read(self):
        return self.now


@pytest.mark.parametrize("late", [0.0, 0.0001, 0.003, 0.1])
@pytest.mark.parametrize("service", [0.005, 0.0005])
def test_a_server_sleeps_what_it_owes_however_late_it_wakes_up(late, service):
    from bench.scale.topology import QUANTUM, Server

    clock = Clock(late)
    server = Server(service, clock.sleep, clock.read)
    for _ in range(10_000):
        server.serve()
    # exact but for what is owed now, or was slept too long the last time
    assert 10_000 * service - QUANTUM <= clock.now <= 10_000 * service + late + 1e-9
    assert clock.sleeps <= 10_000 * service / QUANTUM


@pytest.mark.parametrize("sub_units", [1, 2, 4, 8, 16, 32])
def test_even_keys_are_as_many_for_each_sub_unit(sub_units):
    from bench.scale.topology import KEYS, keys
    from esault.routing.ring import position
    from esault.routing.table import OutputTable

    table = OutputTable.even(list(range(sub_units)))
    found = keys(KEYS, even=True)
    assert len(set(found)) == len(found) == KEYS
    assert set(Counter(table.owner(position(key)) for key in found).values()) == {KEYS // sub_units}
    assert found == keys(KEYS, even=True)
    assert found != sorted(found)


def test_keys_as_they_come_are_not_chosen():
    from bench.scale.topology import keys

    assert sorted(keys(3, even=False)) == ["key-0", "key-1", "key-2"]


def test_the_spout_gives_whole_reads_at_its_rate_and_then_ends(tmp_path, monkeypatch):
    import json
    import time

    from bench.scale.topology import Keys
    from esault import EndOfStream

    now = [100.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    spout = Keys(False, 2.0, 100.0, str(tmp_path / "out"))
    spout.open(None)
    assert spout.read(10) == []
    now[0] += 0.0999
    assert spout.read(10) == []
    now[0] += 0.1502
    given = [spout.read(10) for _ in range(3)]
    assert list(map(len, given)) == [10, 10, 0]
    now[0] += 2.0
    with pytest.raises(EndOfStream):
        spout.read(10)
    spout.close()
    assert json.loads((tmp_path / "out").read_text()) == {"offered": 20, "began": 100.0}


def test_rows_between_two_marks_lie_on_a_straight_line():
    from bench.scale.run import at

    marks = [(10.0, 4), (12.0, 8), (12.0, 9), (13.0, 10)]
    found = [at(marks, moment) for moment in (9.0, 10.0, 11.0, 12.0, 12.5, 13.0, 99.0)]
    assert found == [0.0, 4.0, 6.0, 9.0, 9.5, 10.0, 10.0]


def a_run(**changes):
    return {
        "n": 2,
        "rows": 700,
        "offered": 700,
        "replayed": 0,
        "changes": 0,
        "steady_rows": [300.0, 200.0],
        "window_seconds": 2.0,
        "cpu_seconds": {
            "serve": [0.1, 0.2],
            "offer": [0.05],
            "driver": [0.02],
            "keeper": [0.01],
            "admin": [0.0],
            "command": [0.02],
        },
        "latency_ms": {"p99": 5.0},
        "start_up_seconds": 0.5,
        **changes,
    }


def test_a_runs_figures():
    from bench.scale.__main__ import checked, efficiencies

    run = checked(a_run())
    assert run["tuples_per_second"] == 250.0
    assert run["fullest"] == pytest.approx(1.2)
    assert run["cpu_us_per_tuple"] == pytest.approx({"sub-units": 600, "spout": 100, "control": 100, "all": 800})
    assert run["cpu_share"] == pytest.approx({"sub-units": 0.15, "spout": 0.025, "control": 0.025})
    # had the fuller one had 250 of 500, it would have been done in 1/1.2 of the time
    assert efficiencies(run, 150.0) == pytest.approx({"efficiency": 250 / 300, "efficiency_corrected": 1.0})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rows": 699}, "put out 699 of 700"),
        ({"rows": 828}, "put out 828 of 700"),
        ({"replayed": 1}, "1 roots replayed"),
        ({"changes": 2}, "there were 2 changes"),
    ],
)
def test_a_run_that_lost_repeated_or_changed_something_counts_for_nothing(changes, text):
    from bench.scale.__main__ import checked

    with pytest.raises(RuntimeError, match=text):
        checked(a_run(**changes))


def test_runs_are_summed_up_by_their_median():
    from bench.scale.__main__ import checked, grouped

    runs = [checked(a_run(window_seconds=seconds)) for seconds in (1.0, 2.0, 4.0)]
    group = grouped(runs)
    assert group["tuples_per_second"] == {"median": 250.0, "least": 125.0, "most": 500.0}
    assert group["cpu_share"]["spout"]["median"] == pytest.approx(0.025)
    assert group["runs"] is runs


def test_a_machine_without_memory_for_all_processes_skips_and_says_so(monkeypatch):
    from types import SimpleNamespace

    from bench.scale import __main__ as scale

    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 30))
    assert scale._run(32) == "skipped: 32 processes may need 2048 MiB, and 1024 MiB are free"
    assert callable(scale._run(16))


def test_times_are_per_item_and_what_is_made_before_is_not_counted():
    from bench.scale.table import per_item

    now = [0.0]
    steps = iter([3.0, 5.0, 4.0])

    def fresh():
        now[0] += 1000.0
        return next(steps)

    def call(seconds):
        now[0] += seconds

    assert per_item(call, 10, 3, 1e3, fresh, lambda: now[0]) == {"median": 400.0, "least": 300.0, "most": 500.0}


def test_every_figure_of_a_table_is_there():
    from bench.scale.table import of_table

    figures = of_table(7, 1)
    assert figures["sub_units"] == 7
    for name in ("cached_ns", "uncached_ns", "route_row_ns", "split_us", "merge_us", "install_ms"):
        assert figures[name]["median"] > 0
    assert figures["message_bytes"] > 7 * 100
