"""Programs on LocalRuntime, left alone, changed in mid-stream, killed, put away and resumed: always what a plain loop gives.

Each is left alone. What befalls them befalls all in the deep run, and in others those that use all of the engine that any does.
"""

from __future__ import annotations

import random
from dataclasses import replace
from zlib import crc32

import depth
import pytest
from user_programs import FEW, NAMES, Program

from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.topology.states_on_disk import why_not_on_disk

SIZE = 150
#: tuples a second of the manual clock
RATE = 20_000.0
EXACTLY = Settings(delivery="eo", max_pending=4, root_rows=16, reload_state=True)
AT_LEAST = Settings(max_pending=4, root_rows=16)
CHANGES = ("split", "merge", "move", "scale")
MOST_WIDE = 4


@pytest.fixture(params=depth.chosen(NAMES, FEW))
def program(request):
    return Program(request.param)


@pytest.fixture(params=depth.chosen(NAMES, FEW[::4]))
def changed(request):
    """One in four: units of all of them are changed where processes die as well."""
    return Program(request.param)


@pytest.fixture(params=depth.chosen(NAMES, FEW[1::3]))
def resumed(request):
    """One in three: all of them come back out of a checkpoint where processes die."""
    return Program(request.param)


def found(*runs):
    return {
        sink.name: [(row.key, row.value) for local in runs for row in local.landed(sink.name)]
        for sink in runs[0].plan.sinks
    }


def scalable(plan):
    return [unit for unit in plan.units.values() if unit.kind == "bolt" and not unit.merger]


def may_change(local):
    """Whether there may be any change now."""
    driver = local.driver
    return driver.phase == "running" and not driver.busy and not driver.draining


def legal(local, unit):
    """The changes that this unit may have now, each with its arguments."""
    core = local.driver.units[unit.name]
    if not may_change(local) or not core.steady or core.changing or any(r.leaving for r in core.subs.values()):
        return []
    most = 1 if unit.objects == "unit" else min(unit.max_parallelism or MOST_WIDE, MOST_WIDE)
    free, owners = local.driver.resources.free, local.sub_units(unit.name)
    calls = [("move", owner) for owner in owners if free > 0]
    if core.width < most and free > 0:
        calls += [("split", owner) for owner in owners]
    if core.width > unit.min_parallelism:
        calls += [("merge", owner) for owner in owners]
    calls += [("scale", n) for n in range(unit.min_parallelism, most + 1) if n != core.width and n - core.width <= free]
    return calls


def run(local, seed, changes=0.0, checkpoints=0.0, kills=0, until=None, most_seconds=300.0):
    """To the end, or until `until` says so; each change that is made, by unit. What is not legal is not asked for, so nothing is refused."""
    order, made, start = random.Random(seed), [], local.clock()
    while local.driver.phase != "ended" and not (until is not None and until()):
        if local.driver.phase == "running":
            if changes and order.random() < changes:
                units = scalable(local.plan)
                changed = {name for name, _ in made}
                unit = order.choice([each for each in units if each.name not in changed] or units)
                calls = legal(local, unit)
                if calls:
                    kinds = sorted({kind for kind, _ in calls})
                    kind = order.choice(kinds)
                    call, argument = order.choice([call for call in calls if call[0] == kind])
                    getattr(local, call)(unit.name, argument)
                    made.append((unit.name, call))
            if checkpoints and order.random() < checkpoints:
                driver = local.driver
                if driver.checkpoints.current is None and driver.checkpoints.may_begin(driver.units.values()):
                    local.checkpoint()
            if kills and order.random() < 0.03 and local.driver.restores.in_vain < 3 and local.kept:
                # a source that cannot seek begins anew with its process, and gives its rows twice
                units = [core for core in local.driver.units.values() if not core.plan.spooled]
                alive = [i for core in units for i in core.subs if local.lives(i)]
                if alive:
                    local.kill(order.choice(alive))
                    kills -= 1
        if not local.step():
            local.wait()
        assert local.clock() - start < most_seconds, "stuck"
    assert local.driver.failure is None, local.driver.failure
    return made


def exactly(seed):
    """For every second program checkpoints hold what waits."""
    return replace(EXACTLY, aligned_checkpoint_timeout=0.0) if seed % 2 else EXACTLY


def seed_of(program, number=0):
    return crc32(f"{program.name} {number}".encode())


@pytest.mark.parametrize("name", NAMES)
def test_what_it_gives_is_what_a_plain_loop_gives(name):
    program = Program(name)
    local = LocalRuntime(program.plan(size=SIZE, rate=RATE))
    local.run_until_drained()
    program.check(found(local), SIZE)


@pytest.mark.parametrize("number", range(2 if depth.PROFILE == "deep" else 1))
def test_units_that_are_split_merged_moved_and_scaled_in_mid_stream_give_the_same(changed, number):
    seed = seed_of(changed, number)
    local = LocalRuntime(changed.plan(size=SIZE, rate=RATE), seed=seed, settings=AT_LEAST)
    made = run(local, seed, changes=0.15)
    changed.check(found(local), SIZE)
    assert {name for name, _ in made} == {unit.name for unit in scalable(local.plan)}
    assert len(local.report().changes) == len(made)


@pytest.mark.parametrize("number", range(2 if depth.PROFILE == "deep" else 1))
def test_processes_that_die_bring_all_back_to_a_checkpoint_and_it_gives_the_same(program, number):
    seed = seed_of(program, number)
    local = LocalRuntime(program.plan(size=SIZE, rate=RATE), seed=seed, settings=exactly(seed))
    made = run(local, seed, changes=0.2, checkpoints=0.08, kills=3)
    program.check(found(local), SIZE)
    assert made or not scalable(local.plan)
    assert local.report().restores


def test_objects_that_are_put_away_between_two_tuples_give_the_same(program):
    plan = program.plan(size=SIZE, rate=RATE)
    units = {
        name: replace(unit, idle_after=0.005, keys_in_memory=2 if why_not_on_disk(unit) is None else None)
        if unit.objects == "key" and not (unit.batch or unit.window or unit.expire_after or unit.tick_every)
        else unit
        for name, unit in plan.units.items()
    }
    if units == dict(plan.units):
        pytest.skip("it has no objects that may be put away")
    seed = seed_of(program)
    local = LocalRuntime(replace(plan, units=units), seed=seed, settings=AT_LEAST)
    run(local, seed, changes=0.1)
    program.check(found(local), SIZE)


@pytest.mark.parametrize("number", range(2 if depth.PROFILE == "deep" else 1))
def test_another_run_goes_on_with_another_parallelism(resumed, number):
    seed = seed_of(resumed, number)
    width = (1, 3)[(seed_of(resumed) + number) % 2]  # half of the programs become narrower, and half wider
    if any(unit.spooled for unit in resumed.plan(size=1).units.values()):
        pytest.skip("what it has read is in the memory of a process that is gone")
    before = LocalRuntime(resumed.plan(size=SIZE, rate=RATE), seed=seed, settings=exactly(seed))
    order = random.Random(seed)
    enough = order.randrange(SIZE // 8, SIZE // 2)
    spouts = [name for name, unit in before.plan.units.items() if unit.kind == "spout"]

    def far():
        return before.kept and sum(len(before.emitted(name)) for name in spouts) > enough

    run(before, seed, changes=0.1, checkpoints=0.2, until=far)
    assert before.driver.phase != "ended"
    plan = resumed.plan(size=SIZE, rate=RATE)
    wide = {unit.name: min(width, unit.max_parallelism or width) for unit in scalable(plan) if unit.objects != "unit"}
    later = LocalRuntime(
        plan,
        seed=seed,
        settings=exactly(seed),
        parallelism=wide,
        kept=before.driver.completed,
        last_number=before.driver.checkpoints.newest,
        state_dir=None,
    )
    later.state_store = before.state_store
    # what was prepared for the last checkpoint is shown by the later run, if the earlier one had not come to it
    later._prepared.update(
        {h.handle: before._prepared[h.handle] for h in before.driver.completed.handles if h.handle in before._prepared}
    )
    run(later, seed, changes=0.1, checkpoints=0.1)
    resumed.check(found(before, later), SIZE)
