"""Spouts that are read after others: tables and rules are whole before the first tuple that needs them."""

from __future__ import annotations

import pytest

from esault import Bolt, EndOfStream, SplitReader, SplitSource, Spout, Topology, broadcast, by_key
from esault.errors import TopologyError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import CsvFiles, Items, JsonFiles
from esault.testing import LocalRuntime, Sent
from esault.topology.drawing import draw

CUSTOMERS = [(f"c{i}", f"name {i}") for i in range(40)]
ORDERS = [(f"c{i % 40}", i) for i in range(200)]


class Slow(Spout):
    """Gives a tuple with every third read."""

    def __init__(self, tuples) -> None:
        self.tuples = tuples
        self.given = self.reads = 0

    def read(self, limit):
        self.reads += 1
        if self.given == len(self.tuples):
            raise EndOfStream
        if self.reads % 3:
            return []
        self.given += 1
        return self.tuples[self.given - 1 : self.given]

    def position(self):
        return self.given

    def seek(self, position):
        self.given = position


def joined(parallelism: int = 2, in_order: bool = True) -> Topology:
    """Orders beside the names of customers, who come slowly, and stand behind a step and a bolt of their own."""
    t = Topology("joined")
    customers = t.spout("customers", Slow(CUSTOMERS))
    names = customers.map(str.title).reduce("names", lambda old, new: new, initial="")
    orders = t.spout("orders", Items(ORDERS), after=names if in_order else ())
    orders.join_table("enriched", names, parallelism=parallelism).sink("out", Collect())
    return t


WANTED = sorted((key, (i, f"Name {key[1:]}")) for key, i in ORDERS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
def test_a_table_is_whole_before_the_stream_is_read(seed, delivery):
    local = LocalRuntime(joined(), seed=seed, settings=Settings(delivery=delivery))
    local.run_until_drained()
    assert sorted(local.emitted("enriched")) == WANTED
    assert [text for text in local.driver.notices if "orders" in text] == [
        "orders is read from now on: customers is done"
    ]


def test_without_it_the_stream_passes_by():
    local = LocalRuntime(joined(in_order=False))
    local.run_until_drained()
    assert any(name is None for _, (_, name) in local.emitted("enriched"))


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
@pytest.mark.parametrize("unit", ["customers", "orders", "enriched"])
@pytest.mark.parametrize("rows", [1, 300])
def test_the_order_holds_through_deaths(delivery, unit, rows):
    settings = Settings(delivery=delivery, checkpoint_every=0.05, root_rows=4)
    local = LocalRuntime(joined(), seed=rows, settings=settings)
    local.run_until(lambda: len(local.emitted("customers")) + len(local.emitted("orders")) >= min(rows, 200))
    for incarnation in list(local.driver.units[unit].subs):
        local.kill(incarnation)
    local.run_until_drained()
    found = {(key, value) for key, value in local.emitted("enriched")}
    assert {order for _, (order, _) in found} == set(range(200))
    if unit != "enriched" or delivery is Delivery.EXACTLY_ONCE:
        assert all(name is not None for _, (_, name) in found)


class Ranked(Bolt):
    """Says what came first: each input's tuples, in the order in which they were processed."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def process_stream(self, stream, key, value):
        self.seen.append(stream)
        self.emit(key, list(self.seen))


def test_units_that_meet_again_and_again_are_gone_up_once():
    """There are two to the power of sixty ways up."""

    class Both(Bolt):
        def process_stream(self, stream, key, value):
            self.emit(key, value)

    t = Topology("ladder")
    one, other = t.spout("one", Items([])), t.spout("other", Items([]))
    for i in range(60):
        one, other = (t.bolt(f"{name}{i}", Both, {one: by_key(), other: by_key()}) for name in "ab")
    t.spout("last", Items([]), after=[other, one]).sink("out", Collect())
    assert t.plan().unit("last").after == ("one", "other")


def test_several_wait_for_one_another():
    def topology() -> Topology:
        t = Topology("three")
        first = t.spout("first", Items([("k", 1)] * 30))
        second = t.spout("second", Items([("k", 2)] * 30), after=first)
        third = t.spout("third", Items([("k", 3)] * 30), after=[first.union(second)])
        t.bolt("ranked", Ranked, {first: by_key(), second: by_key(), third: by_key()}).sink("out", Collect())
        return t

    assert topology().plan().unit("third").after == ("first", "second")
    local = LocalRuntime(topology(), seed=3)
    local.run_until_drained()
    _, seen = local.emitted("ranked")[-1]
    assert seen == ["first"] * 30 + ["second"] * 30 + ["third"] * 30


class Checked(Bolt):
    """Orders by the rules that every sub-unit has."""

    def process(self, key, value):
        self.emit(key, (value, len(self.broadcast_state)))

    def process_broadcast(self, key, value):
        self.broadcast_state[key] = value


def test_broadcast_rules_are_there_before_the_first_tuple():
    t = Topology("rules")
    rules = t.spout("rules", Items([(f"r{i}", i) for i in range(25)]))
    orders = t.spout("orders", Items(ORDERS), after=rules)
    t.bolt("checked", Checked, {orders: by_key(), rules: broadcast()}, parallelism=3).sink("out", Collect())
    local = LocalRuntime(t, seed=1)
    local.run_until_drained()
    assert {count for _, (_, count) in local.emitted("checked")} == {25}
    assert len(local.emitted("checked")) == 200


class Table(Slow):
    """Has no end, and says when it has given what was there."""

    def read(self, limit):
        return [] if self.given == len(self.tuples) else super().read(limit)

    def caught_up(self):
        return self.given >= 40


class Restless(Table):
    """Goes on for ever behind what was there."""

    def read(self, limit):
        if self.given < len(self.tuples):
            return super().read(limit)
        self.given += 1
        return [(f"c{self.given}", "new")]


@pytest.mark.parametrize(
    ("kind", "dies"),
    [(Restless, None), (Table, None), (Table, "customers"), (Table, "orders"), (Table, "enriched")],
)
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
def test_one_without_an_end_is_waited_for_until_it_has_caught_up(kind, delivery, dies):
    settings = Settings(delivery=delivery, checkpoint_every=0.05, root_rows=4)
    local = LocalRuntime(joined(), spouts={"customers": kind(CUSTOMERS)}, seed=2, settings=settings)
    if dies is not None:
        local.run_until(lambda: len(local.emitted("customers")) >= 20)
        for incarnation in list(local.driver.units[dies].subs):
            local.kill(incarnation)
    local.run_until(lambda: len({order for _, (order, _) in local.emitted("enriched")}) == 200)
    if dies != "enriched" or delivery is Delivery.EXACTLY_ONCE:
        assert {(key, tuple(pair)) for key, pair in local.emitted("enriched")} == set(WANTED)
    local.drain()
    local.run_until_drained()


def test_a_followed_file_is_waited_for_as_it_stands(tmp_path):
    file = tmp_path / "customers.jsonl"
    file.write_text("".join(f'{{"id": "c{i}", "name": "Name {i}"}}\n' for i in range(40)))

    def topology() -> Topology:
        t = Topology("followed")
        customers = t.spout("customers", JsonFiles(file, key="id", follow=True)).map(lambda row: row["name"])
        orders = t.spout("orders", Items(ORDERS), after=customers)
        orders.join_table("enriched", customers).sink("out", Collect())
        return t

    local = LocalRuntime(topology())
    local.run_until(lambda: len(local.emitted("enriched")) == 200)
    assert sorted(local.emitted("enriched")) == WANTED
    local.drain()
    local.run_until_drained()


@pytest.mark.parametrize("sub_units", [1, 2])
@pytest.mark.parametrize("every", [None, 60])
def test_files_that_are_looked_for_again_and_again_are_waited_for_as_they_were(tmp_path, sub_units, every):
    for i in range(40):
        (tmp_path / f"{i:02}.csv").write_text(f"id,name\nc{i},Name {i}\n")

    def topology() -> Topology:
        t = Topology("found")
        files = CsvFiles(tmp_path, key="id", every=every)
        customers = t.spout("customers", files, parallelism=sub_units).map(lambda row: row["name"])
        orders = t.spout("orders", Items(ORDERS), after=customers)
        orders.join_table("enriched", customers).sink("out", Collect())
        return t

    local = LocalRuntime(topology(), seed=5)
    local.run_until(lambda: len(local.emitted("enriched")) == 200)
    assert sorted(local.emitted("enriched")) == WANTED
    local.drain()
    local.run_until_drained()


def test_one_that_waits_for_an_endless_one_ends_with_the_run():
    local = LocalRuntime(joined(), spouts={"customers": Endless()})
    local.run_for(6.0)
    local.drain()
    local.run_until_drained()
    assert local.emitted("orders") == []
    assert "orders waits: customers is read before it, and not done yet" in local.driver.notices


class Endless(Spout):
    """Has nothing, and has no end."""

    def read(self, limit):
        return []


def test_a_test_that_sends_says_itself_what_comes_first():
    local = LocalRuntime(joined(), spouts={"customers": Sent(), "orders": Sent()})
    local.send("customers", ("c1", "ada"))
    local.send("orders", ("c1", 1), ("c2", 2))
    assert local.emitted("enriched") == [("c1", (1, "Ada")), ("c2", (2, None))]
    local.run_until_drained()


def test_it_is_drawn():
    assert "orders  spout Items, parallelism 1 (1 or more), after customers" in draw(joined().plan())


@pytest.mark.parametrize("after", ["customers", [3], 3, {"customers"}])
def test_what_is_no_stream_is_refused(after):
    t = Topology("wrong")
    t.spout("customers", Items(CUSTOMERS))
    with pytest.raises(TopologyError, match=r"unit 'orders': after is a stream of topology 'wrong' .*after=customers"):
        t.spout("orders", Items(ORDERS), after=after)


def test_a_stream_of_another_topology_is_refused():
    other = Topology("other").spout("customers", Items(CUSTOMERS))
    with pytest.raises(TopologyError, match="after is a stream of topology 'mine'"):
        Topology("mine").spout("orders", Items(ORDERS), after=other)


class Unplaced(Spout):
    """Has neither positions nor an end, and a tuple whenever it is asked."""

    def __init__(self):
        self.given = 0

    def read(self, limit):
        self.given += 1
        return [(f"c{self.given}", f"name {self.given}")]

    def caught_up(self):
        return self.given >= 40


@pytest.mark.parametrize("delivery", list(Delivery))
def test_one_without_positions_is_waited_for_until_what_was_there_is_processed(delivery):
    local = LocalRuntime(joined(), spouts={"customers": Unplaced()}, settings=Settings(delivery=delivery))
    for _ in range(3000):
        if len(local.emitted("orders")) == 200 or not local.step():
            break
        local.clock.advance(0.0005)
    assert len(local.emitted("orders")) == 200


class Shard(SplitReader):
    """A row for each of forty orders, one at a time, and no end."""

    def __init__(self, name, at):
        self.name, self.at = name, at or 0

    def read(self, limit):
        if self.at == 40:
            return []
        self.at += 1
        return [(f"{self.name}-{self.at}", "there")]

    def position(self):
        return self.at

    def caught_up(self):
        return self.at == 40


class Shards(SplitSource):
    discovery_interval = 1000.0

    def splits(self):
        return [f"s{i}" for i in range(6)]

    def open_split(self, id, position):
        return Shard(id, position)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
@pytest.mark.parametrize(("begins", "then"), [(1, 3), (3, 1), (2, 3), (3, None)])
def test_splits_that_go_to_other_readers_are_waited_for(seed, delivery, begins, then):
    t = Topology("shards")
    table = t.spout("table", Shards(), parallelism=begins)
    orders = [(f"s{i % 6}-{1 + i // 6}", i) for i in range(240)]
    t.spout("orders", Items(orders), after=table).join_table("joined", table).sink("out", Collect())
    settings = Settings(delivery=delivery, root_rows=2, max_pending=2, checkpoint_every=0.05)
    local = LocalRuntime(t, seed=seed, settings=settings)
    local.run_until(lambda: len(local.emitted("table")) >= 20)
    if then is not None:
        local.scale("table", then)
    else:
        local.kill(next(iter(local.driver.units["table"].subs)))
    local.run_until(lambda: len({order for _, (order, _) in local.emitted("joined")}) == 240)
    assert {found for _, (_, found) in local.emitted("joined")} == {"there"}
