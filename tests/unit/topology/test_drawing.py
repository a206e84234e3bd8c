from __future__ import annotations

import functools

import pytest

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.builder import Topology
from esault.topology.drawing import draw, mermaid
from esault.topology.error_policy import dead_letter, skip
from esault.topology.grouping import Grouping, by_key, partial_key, shuffle, single
from esault.topology.sink import Sink
from esault.topology.spout import Spout


class Numbers(Spout):
    parallel = True

    def read(self, limit):
        return [(1, 1)]


class Lone(Numbers):
    parallel = False


class Match(Bolt):
    def process_stream(self, stream, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Rows(Sink):
    def write(self, rows):
        pass


class Quoted(Grouping):
    def choose(self, key, value, sub_units):
        return 0

    def __repr__(self):
        return 'Quoted("<#>")'


@pytest.fixture
def sales():
    t = Topology("sales")
    orders, payments = t.spout("orders", Lone()), t.spout("payments", Numbers())
    match = t.bolt(
        "match",
        functools.partial(Match),
        {orders: by_key(), payments: by_key()},
        streams=("unknown", "odd"),
        expire_after=3600,
        buffer=500,
        overflow="drop",
        on_error=skip(2),
    )
    match["unknown"].sink("unknown", Rows())
    words = payments.flat_map(list).filter(bool)
    words.sink("words", Rows())
    words.key_by(len).reduce("count", lambda total, value: total + 1, initial=0, max_parallelism=4)
    return t.plan()


def test_a_tree_shows_units_groupings_steps_and_sinks(sales):
    assert draw(sales) == (
        "topology sales\n"
        "\n"
        "orders  spout Lone, parallelism 1\n"
        "└─ by_key() → match  bolt partial(Match, ...), parallelism 1 (1 or more), one object per key, "
        "expire_after 3600 s, buffer 500, overflow drop, on_error skip(retries=2)\n"
        "   ├─ stream unknown\n"
        "   │  └─ sink unknown  Rows\n"
        "   └─ stream odd (nothing takes it)\n"
        "\n"
        "payments  spout Numbers, parallelism 1 (1 or more)\n"
        "├─ by_key() → match (above)\n"
        "└─ payments.flat_map → payments.filter\n"
        "   ├─ sink words  Rows\n"
        "   └─ payments.key_by\n"
        "      └─ by_key() → count  bolt partial(Reduce, ...), parallelism 1 (1 to 4), one object per key\n"
    )


def test_a_tree_says_what_is_said_about_a_bolt():
    t = Topology("x")
    lines = t.spout("lines", Lone())
    lines.bolt("a", Batches, by_key(), parallelism=2, tick_every=0.5, on_error=dead_letter("d.jsonl", retries=1))
    lines.bolt("b", lambda: Match(), single(), idle_after=5)
    lines.bolt("c", Match, partial_key())
    lines.bolt("d", Match, shuffle())
    a, b, c, d = draw(t.plan()).splitlines()[3:]
    assert a.endswith(
        "a  bolt Batches, parallelism 2 (1 or more), one object per sub-unit, state by key, tick_every 0.5 s, "
        "on_error dead_letter('d.jsonl', retries=1)"
    )
    assert b.endswith("single() → b  bolt the lambda, parallelism 1, one object, idle_after 5 s")
    assert c.endswith("two objects per key")
    assert d.endswith("one object per sub-unit")


def test_a_flowchart_has_each_unit_once_and_each_edge(sales):
    lines = mermaid(sales).splitlines()
    assert lines[0] == "flowchart LR"
    text = "\n".join(line.strip() for line in lines)
    assert 'u0(["orders<br/>Lone"])' in text
    assert 'subgraph p_u1["process of payments"]\nu1(["payments<br/>Numbers"])\n' in text
    assert text.count('"match<br/>partial(Match, ...)"') == 1
    assert 'u0 -->|"by_key()"| u2' in text
    assert 'u1 -->|"by_key()"| u2' in text
    assert 'u2 -->|"unknown"| u2_1k0' in text
    assert 'u2_1k0[("unknown<br/>Rows")]' in text
    assert text.count("subgraph") == text.count("\nend")


def test_every_arrow_of_a_flowchart_joins_nodes_that_are_there(sales):
    lines = [line.strip() for line in mermaid(sales).splitlines()[1:]]
    arrows = [line for line in lines if " --> " in line or " -->|" in line]
    nodes = {line.split("[")[0].split("(")[0] for line in lines if line not in arrows}
    ends = {end for arrow in arrows for end in (arrow.split(" ")[0], arrow.split(" ")[-1])}
    assert len(arrows) == 8
    assert ends <= nodes


def test_a_flowchart_names_the_stream_and_escapes_what_is_ones_own():
    t = Topology("x")
    a = t.spout("lines", Lone()).bolt("a", Match, shuffle(), streams=("s",))
    a["s"].bolt("b", Match, Quoted())
    assert '-->|"s: Quoted(#quot;#lt;#35;#gt;#quot;)"|' in mermaid(t.plan())


def test_copies_and_their_gate_are_drawn():
    t = Topology("t")
    stream = t.spout("numbers", Numbers())
    stream.bolt("count", Match, grouping=by_key(), replicas=2).sink("out", Rows())
    text = draw(t.plan())
    assert "by_key() → count  bolt Match, parallelism 1 (1 or more), one object per key, replica 1 of 2" in text
    assert "by_key() → count~1  bolt Match, parallelism 1 (1 or more), one object per key, replica 2 of 2" in text
    assert "count~merger  merger, passes the first result for each row on" in text
    assert "count~merger (above)" in text
    assert '"count~merger<br/>merger"' in mermaid(t.plan())
