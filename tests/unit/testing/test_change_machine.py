"""The proof of live changes: Hypothesis emits, splits, merges, moves, scales, kills, delays and drains as it likes; then all is counted.

Invariants after every step: each output table tiles the ring with living owners or ones that are being replaced, and its version
only grows. At the end nothing is missing; and if nobody was killed, nothing is doubled and each key's running count is 1, 2, 3 ...
in the order in which it came out. `ESAULT_PROOF=2000` runs so many examples of each machine.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import depth
import numpy as np
import pyarrow as pa
import pytest
from counting import Count, Landed, Split, totals
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from walk import Walk, prove

from esault import BatchBolt, Bolt, EndOfStream, Spout, Topology, by_key, partial_key, shuffle, single
from esault.messages.settings import Settings
from esault.payload.column import plain
from esault.testing import LocalRuntime

pytestmark = pytest.mark.usefixtures("subscales")

EXAMPLES = int(os.environ.get("ESAULT_PROOF", depth.of(25)))
#: that may be changed, where the topology has them
UNITS = ["split", "count", "count~1", "other", "again"]
WORDS = "abcdefghijkl"


class Fed(Spout):
    """Reads what the test has fed; it ends when the test says so."""

    parallel = True

    def __init__(self, feed):
        self.feed = feed
        self.next = 0

    def __deepcopy__(self, memo):
        return type(self)(self.feed)  # every sub-unit reads its part of the same feed

    def read(self, limit):
        part, parts = self.context.part, self.context.parts
        mine = self.feed["rows"][part::parts]
        if self.next >= len(mine):
            if self.feed["ended"]:
                raise EndOfStream
            return []
        rows = mine[self.next : self.next + min(limit, 16)]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


def chain(feed, grouping):
    """Parallel senders, stateless, stateful."""
    t = Topology("chain")
    split = t.spout("lines", Fed(feed), parallelism=2).bolt("split", Split, grouping=shuffle(), parallelism=2)
    split.bolt("count", Count, grouping=grouping, parallelism=2).sink("table", Landed())
    return t


def neighbours(feed, grouping):
    """Two stateful units in a row that may change at once, and a fan-out."""
    t = Topology("neighbours")
    split = t.spout("lines", Fed(feed)).bolt("split", Split, grouping=shuffle())
    first = split.bolt("count", Count, grouping=grouping, parallelism=2)
    first.sink("table", Landed())
    first.bolt("again", Count, grouping=by_key(), parallelism=2).sink("more", Landed())
    return t


def fan_in(feed, grouping):
    """Two units send to one."""
    t = Topology("fan-in")
    lines = t.spout("lines", Fed(feed))
    left = lines.bolt("split", Split, grouping=shuffle())
    right = lines.bolt("other", Split, grouping=shuffle(), parallelism=2)
    t.bolt("count", Count, inputs={left: grouping, right: grouping}, parallelism=2).sink("table", Landed())
    return t


def twins(feed, grouping):
    """A unit with two copies, and one below them."""
    t = Topology("twins")
    split = t.spout("lines", Fed(feed), parallelism=2).bolt("split", Split, grouping=shuffle(), parallelism=2)
    count = split.bolt("count", Count, grouping=grouping, parallelism=2, replicas=2)
    count.sink("table", Landed())
    count.bolt("again", Count, grouping=by_key(), parallelism=2).sink("more", Landed())
    return t


class SplitColumns(BatchBolt):
    """Words as NumPy's and as Arrow's in turn, and as rows."""

    def process_columns(self, keys, values):
        words = " ".join(values).split()
        middle = len(words) // 2
        self.emit_columns(np.array(words[:middle]), np.ones(middle, np.int64))
        self.emit_batch([(word, 1) for word in words[middle : middle + 1]])
        self.emit_columns(pa.array(words[middle + 1 :]), [1] * len(words[middle + 1 :]))


class CountColumns(BatchBolt):
    def process_columns(self, keys, values):
        assert type(values) in (np.ndarray, tuple)  # also in the middle of a change
        assert type(keys) is not tuple or type(values) is tuple
        words, totals = list(plain(keys)), []
        for word, n in zip(words, plain(values)):
            self.keyed[word] = total = self.keyed.get(word, 0) + n
            totals.append(total)
        self.emit_columns(pa.array(words), np.array(totals))


def columns(feed, grouping):
    """Arrays all the way, and a bolt of rows behind them."""
    t = Topology("columns")
    lines = t.spout("lines", Fed(feed), parallelism=2)
    split = lines.bolt("split", SplitColumns, grouping=shuffle(), parallelism=2)
    count = split.bolt("count", CountColumns, grouping=grouping, parallelism=2)
    count.sink("table", Landed())
    count.bolt("again", Count, grouping=by_key(), parallelism=2).sink("more", Landed())
    return t


class Handover(Walk):
    """Of one topology; `kills`: how many processes may die."""

    topology = staticmethod(chain)
    grouping = staticmethod(by_key)
    kills = 0
    #: whether spouts may
    sources_die = False
    #: copies of each word that reach `count`
    copies = 1
    #: rows that `count` emits for each
    emits = 1
    #: whether ledgers may sit in processes of their own
    acked_apart = True

    @initialize(seed=st.integers(0, 1 << 30), ackers=st.sampled_from([0, 0, 1, 2]))
    def begin(self, seed, ackers):
        self.feed: dict[str, Any] = {"rows": [], "ended": False}
        options = Settings(ackers=ackers if self.acked_apart else 0, max_pending=4, root_rows=16, watch_values=False)
        self.local = LocalRuntime(self.topology(self.feed, self.grouping()), seed=seed, settings=options)
        self.versions = {}
        self.left = self.kills
        self.drained = False
        self.local.run_for(0.01)

    @rule(rows=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=40))
    def emit(self, rows):
        if not self.feed["ended"]:
            self.feed["rows"].extend(("f", " ".join(words)) for words in rows)

    @rule(unit=st.sampled_from(UNITS), which=st.integers(0, 9))
    def split(self, unit, which):
        if unit in self.local.driver.units:
            self.wish(unit, "split", self.owner(unit, which))

    @rule(unit=st.sampled_from(UNITS), which=st.integers(0, 9))
    def merge(self, unit, which):
        if unit in self.local.driver.units:
            self.wish(unit, "merge", self.owner(unit, which))

    @rule(unit=st.sampled_from(UNITS), which=st.integers(0, 9))
    def move(self, unit, which):
        if unit in self.local.driver.units:
            self.wish(unit, "move", self.owner(unit, which))

    @rule(unit=st.sampled_from(UNITS), n=st.integers(1, 4))
    def scale(self, unit, n):
        if unit in self.local.driver.units:
            self.wish(unit, "scale", n)

    @rule(which=st.integers(0, 30), steps=st.integers(1, 40))
    def delay(self, which, steps):
        """One process stands still while the others go on."""
        living = [i for u in self.local.driver.units.values() for i in u.subs if self.local.lives(i)]
        if living:
            frozen = living[which % len(living)]
            self.local.freeze(frozen)
            self.go_on(steps)
            if self.local.lives(frozen):
                self.local.thaw(frozen)

    def certain(self):
        self.begin(seed=1, ackers=0)
        self.emit(rows=[WORDS[:4]] * 40)
        self.go_on(steps=20)
        self.scale(unit="split", n=3)
        self.go_on(steps=60)
        if self.kills:
            self.kill(which=0)
        self.teardown()

    @precondition(lambda self: self.left > 0)
    @rule(which=st.integers(0, 30))
    def kill(self, which):
        kinds = ("bolt", "spout") if self.sources_die else ("bolt",)
        subs = [i for u in self.local.driver.units.values() if u.plan.kind in kinds for i in u.subs]
        living = [i for i in (*subs, *self.local.ack_servers()) if self.local.lives(i)]
        if living and self.local.driver.phase == "running":
            self.left -= 1
            self.local.kill(living[which % len(living)])

    @precondition(lambda self: self.left > 0)
    @rule(which=st.integers(0, 30))
    def lose_a_frame(self, which):
        """The newest one that waits for a process: rows, a barrier or an END."""
        bolts = [i for u in self.local.driver.units.values() if u.plan.kind == "bolt" for i in u.subs]
        living = [i for i in bolts if self.local.lives(i)]
        if living and self.local.driver.phase == "running" and self.local.lose_frame(living[which % len(living)]):
            self.left -= 1

    @rule()
    def drain(self):
        """The end may come in the middle of a change."""
        if self.local.driver.phase == "running" and len(self.feed["rows"]) > 200:
            self.feed["ended"] = True

    @invariant()
    def tables_are_whole_and_only_grow(self):
        for name, unit in self.local.driver.units.items() if hasattr(self, "local") else ():
            if unit.table is not None:
                unit.table.check()
                assert unit.table.version >= self.versions.get(name, 0)
                self.versions[name] = unit.table.version

    def teardown(self):
        if not hasattr(self, "local"):
            return
        self.feed["ended"] = True
        local = self.local
        local.run_until_drained(600.0)
        self.done.of(local, *self.must, *(["death"] if self.kills else []))
        words = totals(self.feed["rows"])
        want = words.total() * self.copies * self.emits
        landed = local.landed("table")
        assert len({row.id for row in landed}) == want, "missing"
        report = local.report()
        assert report.roots.open == 0
        assert local.driver.resources.free == local.driver.resources.total - sum(
            len(u.subs) for u in local.driver.units.values()
        )
        if self.left == self.kills:
            assert len(landed) == want, "doubled"
            assert report.roots.replayed == 0
            self.check_order(words)
        for unit in local.driver.units.values():
            assert set(unit.subs) == set(unit.table.owners()) or unit.plan.kind == "spout"

    def check_order(self, words):
        seen = Counter()
        for word, total in self.local.emitted("count"):
            assert total == seen[word] + 1, word
            seen[word] = total
        assert seen == Counter({word: n * self.copies for word, n in words.items()})


class Killed(Handover):
    kills = 4


class SourceKilled(Killed):
    sources_die = True


class Neighbours(Handover):
    topology = staticmethod(neighbours)


class NeighboursKilled(Neighbours):
    kills = 4


class FanIn(Handover):
    topology = staticmethod(fan_in)
    copies = 2


class FanInKilled(FanIn):
    kills = 4


class Twins(Handover):
    topology = staticmethod(twins)
    acked_apart = False


class TwinsKilled(Twins):
    kills = 4


class TwinsSourceKilled(TwinsKilled):
    sources_die = True


class OfColumns(Handover):
    topology = staticmethod(columns)


class Single(Handover):
    topology = staticmethod(lambda feed, grouping: single_chain(feed))


class Partial(Handover):
    grouping = staticmethod(partial_key)

    def check_order(self, words):
        """Two objects a key: their last counts add up."""
        assert Counter(word for word, _ in self.local.emitted("count")) == words


def single_chain(feed):
    t = Topology("single")
    split = t.spout("lines", Fed(feed)).bolt("split", Split, grouping=shuffle(), parallelism=2)
    all_words = split.bolt("count", CountAll, grouping=single())
    all_words.sink("table", Landed())
    return t


class CountAll(Bolt):
    def __init__(self):
        self.totals = {}

    def process(self, key, value):
        self.totals[key] = self.totals.get(key, 0) + 1
        self.emit(key, self.totals[key])


@pytest.mark.parametrize(
    "machine",
    [
        Handover,
        Killed,
        SourceKilled,
        Neighbours,
        NeighboursKilled,
        FanIn,
        FanInKilled,
        Twins,
        TwinsKilled,
        TwinsSourceKilled,
        OfColumns,
        Single,
        Partial,
    ],
    ids=lambda m: m.__name__,
)
def test_whatever_happens_nothing_is_lost(done, machine):
    prove(machine, EXAMPLES, done)
