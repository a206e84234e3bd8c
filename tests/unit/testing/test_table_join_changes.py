"""A join with a table is what a loop over the rows gives, whatever splits, merges, moves or dies."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

from commands_asked import checkpoint, some_change
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault import Topology
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime

#: (key, (side, number)): a row of the left side, a value of the table, or None for a key that is taken out of it
ROWS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.tuples(st.sampled_from("lllttn"), st.integers(0, 99))), max_size=80
)


def topology(rows, missing, most):
    t = Topology("enrich")
    both = t.spout("both", Items(rows))
    left = both.filter(lambda value: value[0] == "l")
    table = both.filter(lambda value: value[0] != "l").map(lambda value: None if value[0] == "n" else value[1])
    joined = left.join_table("joined", table, missing=missing, wait_most=most, parallelism=2)
    joined.sink("out", Collect())
    joined["unmatched"].sink("unmatched", Collect())
    return t


def batch(rows, missing, most):
    """The same by a loop: pairs by key, and what found none."""
    newest, waiting, pairs, unmatched = {}, defaultdict(list), defaultdict(list), defaultdict(list)
    for key, value in rows:
        side, number = value
        if side == "n":
            newest.pop(key, None)
        elif side == "t":
            newest[key] = number
            pairs[key] += [(each, number) for each in waiting.pop(key, [])]
        elif key in newest or missing == "none":
            pairs[key].append((value, newest.get(key)))
        elif missing == "drop":
            unmatched[key].append(value)
        else:
            waiting[key].append(value)
            if most is not None and len(waiting[key]) > most:
                unmatched[key].append(waiting[key].pop(0))
    for key, left in waiting.items():
        unmatched[key] += left
    return tuple({key: values for key, values in found.items() if values} for found in (pairs, unmatched))


def by_key(rows):
    found = defaultdict(list)
    for key, value in rows:
        found[key].append(value)
    return dict(found)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ROWS,
    st.sampled_from([("none", None), ("drop", None), ("wait", None), ("wait", 2)]),
    st.integers(0, 1 << 30),
    st.sampled_from(["alo", "eo"]),
    st.integers(0, 2),
)
@example(rows=[("b", ("l", 51)), ("d", ("l", 34))], how=("wait", 2), seed=12213, delivery="eo", kills=2)
@example(
    rows=[
        ("c", ("l", 60)),
        ("b", ("n", 1)),
        ("b", ("l", 1)),
        ("b", ("n", 43)),
        ("d", ("n", 62)),
        ("f", ("t", 62)),
        ("a", ("t", 83)),
    ],
    how=("none", None),
    seed=81699,
    delivery="eo",
    kills=2,
)
def test_it_is_what_a_loop_gives(done, rows, how, seed, delivery, kills):
    # One row a root: the two sides of a key come in the order in which they were read.
    options = Settings(delivery=delivery, root_rows=1, max_pending=4)
    local = LocalRuntime(topology(rows, *how), seed=seed, settings=options)
    order = random.Random(seed)
    kills = kills if delivery == "eo" else 0
    while local.driver.phase != "ended":
        if local.driver.phase == "running" and order.random() < 0.2:
            if delivery == "eo" and order.random() < 0.2:
                checkpoint(local)
            else:
                some_change(local, order, ["joined"])
        living = [i for i in local.sub_units("joined") if local.lives(i)]
        if kills and living and local.driver.phase == "running" and order.random() < 0.05:
            local.kill(order.choice(living))
            kills -= 1
        if not local.step():
            local.wait()
    assert local.driver.failure is None, local.driver.failure
    done.of(local, "change", "checkpoint", "death")
    pairs, unmatched = batch(rows, *how)
    if delivery == "alo":
        assert by_key(local.emitted("joined")) == pairs
        assert by_key(local.emitted("joined", "unmatched")) == unmatched
    for sink, want in (("out", pairs), ("unmatched", unmatched)):  # sub-units commit in any order
        got = by_key((row.key, row.value) for row in local.landed(sink))
        assert {key: Counter(values) for key, values in got.items()} == {k: Counter(v) for k, v in want.items()}
