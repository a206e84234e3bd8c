"""Programs on real processes: one run each, in which units are scaled and a process is killed; some are killed whole.

The deep run takes every program, and kills whole each that can be resumed; others take a few. What programs use of the engine
is tried by all of them on LocalRuntime: here are sources, sinks, columns, coroutines and state as they go through processes.
"""

from __future__ import annotations

import random
from zlib import crc32

import depth
import pytest
from user_programs import NAMES, Program
from user_runs import Run

pytestmark = pytest.mark.slow
SIZE, RATE = (1500 if depth.PROFILE == "deep" else 600), 600.0
#: coroutines and a clock; joins by time; a table that is landed; columns; patterns
FEW = ("solar", "attribution", "limits", "columns_of_sales", "helpdesk")
RESUMED = ("limits",)
if depth.PROFILE == "deep":  # what a source that cannot seek has read is with its process
    RESUMED = tuple(n for n in NAMES if not any(unit.spooled for unit in Program(n).plan(size=1).units.values()))


@pytest.fixture
def run(request, tmp_path):
    made = Run(Program(request.param), tmp_path)
    yield made
    made.end()


def bolts(run):
    """Units that may be scaled, and to how many."""
    plan = run.program.plan(size=1)
    return {
        unit.name: min(unit.max_parallelism or 3, 3)
        for unit in plan.units.values()
        if unit.kind == "bolt" and not unit.merger and unit.objects != "unit" and unit.max_parallelism != 1
    }


def mortal(run):
    """Units whose death loses nothing, spouts among them: one that cannot seek begins anew with its process."""
    return [unit.name for unit in run.program.plan(size=1).units.values() if not unit.spooled]


def scale(run, unit, n):
    """Whether it was changed before the run's end."""
    answers = run.tell(do="scale", unit=unit, n=n)
    assert not any("error" in answer for answer in answers), answers
    return bool(answers)


@pytest.mark.parametrize("run", depth.chosen(NAMES, FEW), indirect=True)
def test_units_are_scaled_and_a_process_is_killed_and_it_gives_what_a_plain_loop_gives(run, tmp_path):
    order = random.Random(crc32(run.program.name.encode()))
    run.start_held("--checkpoint", "0.3", "--policy", "none", size=SIZE, rate=RATE)
    wide = bolts(run)
    chosen = order.sample(sorted(wide), min(2, len(wide)))
    for unit in chosen:
        scale(run, unit, wide[unit])
    run.until(lambda: run.status().get("checkpoint", 0) >= 1)
    order.choice(run.processes(order.choice(mortal(run)))).kill()
    run.until(lambda: run.status().get("restores", 0) >= 1)
    if chosen:  # and a merge, of what was gone back to
        run.until(lambda: run.status().get("phase") == "running")
        scale(run, chosen[0], 1)
    run.go_on()
    run.wait()
    run.program.check_files(tmp_path / "out", SIZE)
    report = run.report()
    assert {change["unit"] for change in report["changes"]} >= set(chosen)
    assert report["restores"]
    assert run.left() == []


@pytest.mark.parametrize("run", RESUMED, indirect=True)
def test_after_the_death_of_everything_another_run_goes_on_with_another_parallelism(run, tmp_path):
    run.start_held("--checkpoint", "0.2", "--policy", "none", size=SIZE, rate=RATE)
    run.until(lambda: run.status().get("checkpoint", 0) >= 2)
    run.kill_all()
    wide = [f"--parallelism={unit}={n}" for unit, n in bolts(run).items()]
    run.start("--checkpoint", "0.2", "--policy", "none", "--resume", *wide, size=SIZE, rate=RATE * 10)
    run.wait()
    run.program.check_files(tmp_path / "out", SIZE)
    assert run.report()["checkpoints"]["resumed_from"] >= 2
    assert run.left() == []
