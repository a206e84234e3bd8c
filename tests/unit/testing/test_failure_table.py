"""Each row of the failure table in docs/explanation/rescaling.md: who dies at which step of a change, and what comes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import depth
import pytest
from counting import missing, text, words

from esault.control.units.rescale_table import RescaleState
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

pytestmark = pytest.mark.slow  # not in `make quick`

LINES = 200 if depth.PROFILE == "deep" else 120
#: seconds after which a root is sent again: a run whose source dies in time passes so many
REPLAY_AFTER = 20.0


def begin(seed, lines=LINES, **settings):
    options = Settings(max_pending=4, root_rows=16, **settings)
    plan = replace(words().plan(), replay_after=REPLAY_AFTER)
    local = LocalRuntime(plan, spouts={"lines": text(lines, seed)}, seed=seed, settings=options)
    steps(local, lambda: len(local.emitted("count")) > 200)
    return local


def steps(local, reached):
    for _ in range(100_000):
        if reached():
            return
        if not local.step():
            local.wait()
    raise AssertionError("never got there")


def state(local):
    return local.driver.units["count"].rescaling.state


def forking(local, change):
    return state(local) is RescaleState.STARTING and all(local.lives(n) for n in change.news)


def readying(local, change):
    return state(local) is RescaleState.HOLDING


def published(local, change):
    return state(local) is RescaleState.MOVING and bool(change.giving)


def aligned(local, change):
    """The old owner has read every barrier and given its rows; state may still be on its way."""
    old = min(change.old_owners)
    giving = local._processes[old].core.changes._outgoing if old in local._processes else None
    return state(local) is RescaleState.MOVING and (giving is None or giving.aligned)


STEPS = {"forking": forking, "readying": readying, "published": published, "aligned": aligned}
KINDS = ["split", "merge", "move"]
ROLES = {
    "new": lambda local, change: max(change.news or change.new_owners),
    "old": lambda local, change: min(change.old_owners),
    "sender": lambda local, change: min(local.driver.units["split"].subs),
    "source": lambda local, change: min(local.driver.units["lines"].subs),
    "ack server": lambda local, change: min(local.ack_servers()),
}


def die(roles, step, kind, seed, **settings):
    """Kill these roles at this step of a change of `count`, and run to the end: the change's record, None if it was over by then."""
    local = begin(seed, **settings)
    unit = local.driver.units["count"]
    getattr(local, kind)("count", local.sub_units("count")[0])
    change = unit.change
    steps(local, lambda: change is not unit.change or STEPS[step](local, change))
    if unit.change is not change:
        return None
    victims = {ROLES[role](local, change) for role in roles}
    if not all(local.lives(victim) for victim in victims):
        return None
    for victim in victims:
        local.kill(victim)
    local.run_until_drained(600.0)
    if settings.get("delivery") != "none":
        assert not missing(local, LINES)
        assert local.report().roots.open == 0
    unit.table.check()
    assert set(unit.table.owners()) == set(unit.subs)
    assert not victims & set(unit.subs)
    return unit.changes[-1]


def reached(step, kind):
    """Whether there is such a step: a merge makes no new process, it is never forking for longer than it takes to say so."""
    return (step, kind) != ("forking", "merge")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("role", ["new", "old", "sender", "source"])
def test_nothing_is_missing_whoever_dies_when(role, step, kind):
    records = [die([role], step, kind, seed) for seed in depth.seeds(6)]
    assert all((record is not None) == reached(step, kind) for record in records)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ackers", [1, 2])
def test_nothing_is_missing_when_the_ledgers_die_in_a_change(ackers, step, kind):
    records = [die(["ack server"], step, kind, seed, ackers=ackers) for seed in depth.seeds(3)]
    assert all((record is not None) == reached(step, kind) for record in records)
    assert not any(record.dropped for record in records if record is not None)  # an ack server has no part in a change


PAIRS = list(itertools.combinations(ROLES, 2))
#: each with each in the deep run; in others each pair at every second step
TOGETHER = [
    (step, pair)
    for (i, step), (j, pair) in itertools.product(enumerate(STEPS), enumerate(PAIRS))
    if depth.PROFILE == "deep" or (i + j) % 2 == 0
]


@pytest.mark.parametrize(
    ("step", "pair"), TOGETHER, ids=lambda each: each if isinstance(each, str) else " and ".join(each)
)
def test_nothing_is_missing_when_two_die_at_once(pair, step):
    kinds = depth.chosen(KINDS, ("split", ("merge", "move")[pair[0] == "new"]))
    records = [die(pair, step, kind, seed, ackers=1) for kind in kinds for seed in depth.seeds(2)]
    assert any(record is not None for record in records)


#: all in the deep run; in others two of them determine the third
UNACKED = [
    (role, step, kind)
    for (i, role), (j, step), (k, kind) in itertools.product(
        enumerate(["new", "old", "sender", "source"]), enumerate(STEPS), enumerate(KINDS)
    )
    if depth.PROFILE == "deep" or (i + j + k) % 3 == 0
]


@pytest.mark.parametrize(("role", "step", "kind"), UNACKED)
def test_without_acks_the_change_ends_as_well_and_the_table_is_whole(role, step, kind):
    records = [die([role], step, kind, seed, delivery="none") for seed in depth.seeds(3)]
    assert any(record is not None for record in records) == reached(step, kind)


@pytest.mark.parametrize("role", ["new", "old"])
@pytest.mark.parametrize("step", ["forking", "readying"])
def test_before_the_table_is_published_the_change_is_dropped(role, step):
    records = [die([role], step, "split", seed) for seed in depth.seeds(4)]
    assert all(r.dropped for r in records)
    assert all(r.after == 2 for r in records)


@pytest.mark.parametrize("role", ["new", "old", "sender", "source"])
def test_once_it_is_published_the_change_goes_on(role):
    records = [die([role], "published", "split", seed) for seed in depth.seeds(4)]
    assert not any(r.dropped for r in records)
    assert all(r.after == 3 for r in records)


@pytest.mark.parametrize("role", ["sender", "source"])
def test_a_senders_death_before_the_table_is_published_lets_the_change_go_on(role):
    records = [die([role], "readying", "split", seed) for seed in depth.seeds(4)]
    assert not any(r.dropped for r in records)


@pytest.mark.parametrize("seed", depth.seeds(8))
def test_a_source_that_dies_while_the_run_drains_reads_again_what_was_not_durable(seed):
    local = begin(seed, 4 * LINES)
    unit = local.driver.units["lines"]
    local.throttle("lines", 100.0, 5.0)  # or it would have read all of them before it is told of
    steps(local, lambda: max(unit.lives.read.values(), default=0) > 0)  # a status report says how far it has read
    local.drain()
    local.step()
    read = max(unit.lives.read.values())
    victims = [*unit.subs, local.sub_units("count")[0]]
    for victim in victims:
        if local.lives(victim):
            local.kill(victim)
    local.run_until_drained(600.0)
    landed = {row.id.split(":")[1] for row in local.landed("table")}
    assert read > 0
    assert landed >= {f"{i}.{j}.0" for i in range(read) for j in range(8)}
