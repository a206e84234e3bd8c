"""Layer one: each key goes to whom the table names, whatever has been split and merged, from the cache or not."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from esault import by_key
from esault.errors import PayloadError
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route_factory import route
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.routing.table_change import merged, moved, rescaled, split, subscales
from esault.topology.plan import Edge


class Channel:
    def __init__(self):
        self.rows = []

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += zip(keys, values, ids or values)


def routed(table, keys, cache_size=64):
    made = route("words", Edge("count", 0, by_key()), cache_size)
    channels = {owner: Channel() for owner in table.owners()}
    made.install(table, channels)
    for start in range(0, len(keys), 16):
        part = keys[start : start + 16]
        values = list(range(start, start + len(part)))
        ids = [f"id-{value}" for value in values] if start % 32 else None
        made.push(Lineage((1, start, 0), 0.0), part, values, ids, 0.0)
    return {owner: channel.rows for owner, channel in channels.items()}


def changed(owners, changes, seed):
    """A table after a walk of splits, merges and moves: owners with several intervals, intervals in no order."""
    order = random.Random(seed)
    table = OutputTable.even(list(range(owners)))
    for _ in range(changes):
        start = order.choice([low for low, high, _ in table.intervals() if high > low])
        what = order.choice(["split", "split", "left", "right", "move"])
        if what == "split":
            table.split(start, order.randrange(owners))
        elif what == "move":
            table.move(start, order.randrange(owners))
        else:
            (table.merge_left if what == "left" else table.merge_right)(start)
    return table


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("owners", [1, 2, 7, 300])
def test_rows_go_to_the_owner_that_the_table_names(owners, seed):
    table = changed(owners, 40, seed)
    order = random.Random(seed)
    # more keys than the cache holds, each of them twice at least; keys that Python takes for equal among them
    keys = [order.choice([f"key-{order.randrange(200)}", order.randrange(100), True, False]) for _ in range(1000)]
    for owner, rows in routed(table, keys).items():
        assert all(table.owner(position(key)) == owner for key, _, _ in rows)
        assert all(id in (value, f"id-{value}") for _, value, id in rows)
        values = [value for _, value, _ in rows]
        assert values == sorted(values)  # in the order in which they came
        assert all(keys[value] is key for key, value, _ in rows)
    assert sum(map(len, routed(table, keys).values())) == len(keys)


def test_a_new_table_forgets_what_the_cache_held():
    made = route("words", Edge("count", 0, by_key()), 64)
    table = OutputTable.even([1, 2])
    before, after = ({owner: Channel() for owner in (1, 2)} for _ in range(2))
    keys = [f"key-{i}" for i in range(20)]
    made.install(table, before)
    made.push(Lineage((1, 1, 0), 0.0), keys, keys, None, 0.0)
    made.install(OutputTable.even([2, 1]), after)
    made.push(Lineage((1, 2, 0), 0.0), keys, keys, None, 0.0)
    assert before[1].rows
    assert before[1].rows == after[2].rows
    assert before[2].rows == after[1].rows


@pytest.mark.parametrize("seed", range(30))
def test_what_the_cache_held_stays_right_over_any_walk_of_changes(seed):
    order = random.Random(seed)
    made = route("words", Edge("count", 0, by_key()), 500)
    keys = [f"key-{i}" for i in range(300)]
    for turn in range(6):
        table = changed(order.choice([1, 2, 5, 120]), order.randrange(30), order.random())
        channels = {owner: Channel() for owner in table.owners()}
        made.install(table, channels)
        part = order.sample(keys, 200)
        made.push(Lineage((1, turn, 0), 0.0), part, part, None, 0.0)
        for owner, channel in channels.items():
            assert all(table.owner(position(key)) == owner for key, *_ in channel.rows)


def subscale_tables(table, after, many):
    """The tables that senders get of a change in so many subscales."""
    parts = subscales(table.moves_to(after), many)
    found = [table.copy()]
    for move in (move for moves in parts for move in moves):
        found[0].assign(move.low, move.high, move.old)
    for moves in parts:
        found.append(found[-1].copy())
        for move in moves:
            found[-1].assign(move.low, move.high, move.new)
    return found[1:]


@pytest.mark.parametrize(("size", "again"), [(500, 1), (37, 9)])
@pytest.mark.parametrize("kind", ["split", "merge", "move", "rescale"])
def test_a_change_in_subscales_computes_a_place_once(kind, size, again, monkeypatch):
    """With a cache that holds all keys, and one that is cleared in the midst of it."""
    table = OutputTable.even([1, 2, 3])
    after = {
        "split": lambda: split(table, 2, 4),
        "merge": lambda: merged(table, 3),
        "move": lambda: moved(table, 2, 4),
        "rescale": lambda: rescaled(table, [1, 2, 3, 4, 5]),
    }[kind]()
    made = route("words", Edge("count", 0, by_key()), size)
    keys = [f"key-{i}" for i in range(200)]
    computed = Counter()
    monkeypatch.setattr("esault.flow.send.route.position", lambda key: computed.update([key]) or position(key))
    for turn, each in enumerate([table, *subscale_tables(table, after, 7), after]):
        channels = {owner: Channel() for owner in each.owners()}
        made.install(each, channels)
        part = keys if turn % 3 else keys[::2]  # some keys come for the first time in the midst of it
        made.push(Lineage((1, turn, 0), 0.0), part, part, None, 0.0)
        for owner, channel in channels.items():
            assert all(each.owner(position(key)) == owner for key, *_ in channel.rows)
        assert sum(len(channel.rows) for channel in channels.values()) == len(part)
        if turn == 7:
            moves = [key for key in keys if table.owner(position(key)) != after.owner(position(key))]
            assert max(computed.values()) <= 2 * again and set(moves) <= set(computed)


def test_keys_of_owners_that_lost_nothing_are_not_computed_anew(monkeypatch):
    made = route("words", Edge("count", 0, by_key()), 500)
    keys = [f"key-{i}" for i in range(200)]
    tables = [OutputTable.even([1, 2, 3]) for _ in range(2)]
    tables[1].split(tables[1].intervals()[0][0], 4)  # owner 1 gives half of its range to a newcomer
    made.install(tables[0], {owner: Channel() for owner in (1, 2, 3)})
    made.push(Lineage((1, 1, 0), 0.0), keys, keys, None, 0.0)
    computed = []
    monkeypatch.setattr("esault.flow.send.route.position", lambda key: computed.append(key) or position(key))
    made.install(tables[1], {owner: Channel() for owner in (1, 2, 3, 4)})
    made.push(Lineage((1, 2, 0), 0.0), keys, keys, None, 0.0)
    assert sorted(computed) == sorted(key for key in keys if tables[0].owner(position(key)) == 1)


def test_a_tuple_without_a_key_is_refused_with_the_remedy():
    with pytest.raises(PayloadError, match=r"unit 'words' emitted a tuple without a key .*put key_by"):
        routed(OutputTable.even([1, 2]), [None])
