"""Broadcast state is the same in all sub-units, and each tuple is in it once, wherever keys go and whoever dies."""

from __future__ import annotations

import random
from dataclasses import dataclass

import depth
import pytest
from commands_asked import change
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_checkpoints import walk

from esault import Bolt, EndOfStream, Spout, Topology, TopologyError, TopologyFailed, broadcast, by_key, shuffle, skip
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.broadcast_state import BroadcastState

pytestmark = pytest.mark.usefixtures("subscales")

KEYS = "abcdefgh"


class Steadily(Spout):
    """A row or two whenever it is asked."""

    def __init__(self, rows):
        self.rows, self.next = rows, 0

    def read(self, limit):
        if self.next >= len(self.rows):
            raise EndOfStream
        rows = self.rows[self.next : self.next + 2]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Ruled(Bolt):
    """Each key counts its tuples; all that was broadcast is kept as it came, by sender. `finish` says both."""

    def __init__(self):
        self.n = 0
        self.seen = 0

    def process_broadcast(self, key, value):
        sender, number = value
        self.broadcast_state[sender] = (*self.broadcast_state.get(sender, ()), number)

    def process(self, key, value):
        self.n += 1
        rules = sum(map(len, self.broadcast_state.values()))
        self.emit(key, ("seen", rules >= self.seen or (self.seen, rules)))
        self.seen = rules

    def finish(self):
        self.emit(self.key, ("end", self.n, tuple(sorted(self.broadcast_state.items()))))


class Timed(Ruled):
    def on_timer(self, name, at): ...


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def topology(rows, rules, bolt=Ruled, senders=2, **options):
    """Rules come by two ways, rows by two sub-units; all of them while the run lasts, a few at a time."""
    t = Topology("ruled")
    tuples = t.spout("rows", Steadily(rows)).bolt("pass", Pass, shuffle(), parallelism=2)
    inputs = {tuples: by_key()}
    for sender in range(senders):
        mine = [(number, (sender, number)) for number in range(rules)]
        inputs[t.spout(f"rules{sender}", Steadily(mine))] = broadcast()
    t.bolt("ruled", bolt, inputs, parallelism=2, **options).sink("table", Landed())
    return t


def expected(rows, rules, senders=2):
    state = tuple((sender, tuple(range(rules))) for sender in range(senders))
    count = dict.fromkeys(KEYS, 0)
    for key, _ in rows:
        count[key] += 1
    return sorted((key, ("end", n, state)) for key, n in count.items() if n)


def ends(local):
    return sorted((row.key, row.value) for row in local.landed("table") if row.value[0] == "end")


def rows_of(seed, count):
    order = random.Random(seed)
    return [(order.choice(KEYS), n) for n in range(count)]


def changed_at_random(seed, kinds):
    """A run whose units change amid its tuples, in these ways, and its rows."""
    rows = rows_of(seed, 300)
    options = Settings(max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    local = LocalRuntime(topology(rows, 60), seed=seed, settings=options)
    order = random.Random(seed)
    while local.driver.phase != "ended":
        if order.random() < 0.03 and local.driver.phase == "running":
            unit = order.choice(["ruled", "ruled", "pass"])
            change(local, unit, order.choice(kinds), order.choice(local.sub_units(unit)))
        local.step() or local.wait()
    local.run_until_drained()
    return local, rows


@pytest.mark.parametrize("seed", depth.chosen(range(12), range(4)))
def test_without_deaths_each_tuple_is_once_in_each_sub_unit(done, seed):
    local, rows = changed_at_random(seed, ["split", "split", "merge", "move"])
    assert ends(local) == expected(rows, 60)


@pytest.mark.parametrize("subscales", ["at once"], indirect=True)
@pytest.mark.parametrize("seed", depth.chosen(range(12), range(4)))
def test_a_key_finds_no_older_state_where_a_new_sub_unit_gets_it(done, seed, subscales):
    local, rows = changed_at_random(seed, ["split", "move"])
    assert ends(local) == expected(rows, 60)
    assert all(row.value[1] is True for row in local.landed("table") if row.value[0] == "seen")


@pytest.mark.parametrize("timers", [False, True])
def test_it_is_all_that_checkpoints_say_of_it(timers):
    rows = rows_of(1, 60)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    local = LocalRuntime(topology(rows, 20, Timed if timers else Ruled), settings=options)
    while len(local.emitted("ruled")) < 20:
        local.step() or local.wait()
    local.checkpoint()
    while not local.kept:
        local.step() or local.wait()
    local.kill(local.sub_units("ruled")[0])
    local.run_until_drained()
    assert ends(local) == expected(rows, 20)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4), st.booleans())
@example(seed=1, kills=2, idle=True)
@example(seed=3, kills=2, idle=False)
def test_whoever_dies_with_checkpoints_each_tuple_is_once_in_each_sub_unit(done, seed, kills, idle):
    rows = rows_of(seed, 150)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    more = {"idle_after": 0.01} if idle else {}
    local = LocalRuntime(topology(rows, 40, **more), seed=seed, settings=options)
    walk(local, random.Random(seed), "ruled", kills=kills)
    done.of(local, "change", "checkpoint")
    assert ends(local) == expected(rows, 40)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_another_parallelism_after_a_checkpoint_has_the_same(before, after, tmp_path):
    kept = []
    rows = rows_of(1, 200)
    local = LocalRuntime(topology(rows, 100), parallelism={"ruled": before}, settings=Settings(delivery="eo"))
    while len(local.emitted("ruled")) < 20:
        local.step() or local.wait()
    local.checkpoint()
    while not local.kept:
        local.step() or local.wait()
    kept = local.kept[-1]
    assert 0 < sum(len(rules) for rules in seen_by(local, "ruled")[0].values()) < 200
    again = LocalRuntime(topology(rows, 100), parallelism={"ruled": after}, settings=Settings(delivery="eo"), kept=kept)
    again.state_store = local.state_store
    again.run_until_drained()
    assert ends(again) == expected(rows, 100)
    assert len(seen_by(again, "ruled")) in (0, after)


def seen_by(local, unit):
    """Broadcast state of the sub-units that live."""
    subs = [local._processes[i] for i in local.sub_units(unit) if local.lives(i)]
    return [dict(sub.core.operator.broadcast) for sub in subs]


@dataclass
class Rule:
    least: int


class Decide(Bolt):
    def process_broadcast(self, key, value):
        if value is None:
            self.broadcast_state.pop(key, None)
        else:
            self.broadcast_state[key] = Rule(value)

    def process(self, key, value):
        for name, rule in self.broadcast_state.items():
            if value >= rule.least:
                self.emit(key, name)


def small(bolt, rows=(("a", 7),), rules=(("big", 5),), inputs=None, **options):
    t = Topology("small")
    sent = t.spout("rules", Nothing())
    tuples = t.spout("rows", Nothing())
    t.bolt("bolt", bolt, inputs(tuples, sent) if inputs else {tuples: by_key(), sent: broadcast()}, **options)
    local = LocalRuntime(t, spouts={"rows": [("a", 0)] * 3, "rules": rules})
    local.run_until_drained()
    return local


def test_values_may_be_of_the_users_own_classes_and_are_taken_out_again():
    local = small(Decide, rules=[("big", -1), ("small", 0), ("big", None)])
    assert set(local.emitted("bolt")) <= {("a", "big"), ("a", "small")}


class Writes(Decide):
    def process(self, key, value):
        self.broadcast_state["mine"] = 1


class WritesSelf(Decide):
    def process_broadcast(self, key, value):
        self.newest = value


class Emits(Decide):
    def process_broadcast(self, key, value):
        self.emit(key, value)


class Unpackable(Decide):
    def process_broadcast(self, key, value):
        self.broadcast_state[key] = lambda: value


class Raises(Decide):
    def process_broadcast(self, key, value):
        raise KeyError(key)


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (Writes, "broadcast state is read-only here"),
        (WritesSelf, "process_broadcast of WritesSelf changed attributes of self"),
        (Emits, "Emits.emit: process_broadcast is called in each sub-unit"),
        (Unpackable, "broadcast_state\\['big'\\] cannot be saved or moved: function: a lambda"),
        (Raises, "unit 'bolt', process_broadcast, key 'big': KeyError"),
    ],
)
def test_what_would_differ_between_sub_units_ends_the_run_with_its_reason(bolt, said):
    with pytest.raises(TopologyFailed, match=said):
        small(bolt)


class ByStream(Bolt):
    """Keeps what is broadcast by the stream that it came by."""

    def process_broadcast_stream(self, stream, key, value):
        self.broadcast_state[stream] = (*self.broadcast_state.get(stream, ()), (key, value))

    def process(self, key, value): ...

    def finish(self):
        self.emit(self.key, dict(self.broadcast_state))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_streams_that_are_broadcast_are_told_apart(parallelism):
    t = Topology("several")
    limits = t.spout("limits", Items([("all", 100), ("north", 50)]))
    blocked = t.spout("blocked", Items([("card-1", True), ("card-2", None)]))
    rows = t.spout("rows", Items([(key, 1) for key in KEYS]))
    inputs = {rows: by_key(), limits: broadcast(), blocked.filter(bool): broadcast()}
    t.bolt("kept", ByStream, inputs, parallelism=parallelism)
    local = LocalRuntime(t)
    local.run_until_drained()
    want = {"limits": (("all", 100), ("north", 50)), "blocked": (("card-1", True),)}
    assert local.emitted("kept") and all(state == want for _, state in local.emitted("kept"))
    with pytest.raises(
        TopologyError, match="ByStream defines process_broadcast_stream, and no input comes by broadcast"
    ):
        t.bolt("none", ByStream, {rows: by_key()})


def test_an_error_of_a_rule_may_be_skipped():
    local = small(Raises, on_error=skip())
    assert local.report().units["bolt"].errors == 1


class Waits(Decide):
    async def process(self, key, value):
        pass


class NoState(Bolt):
    def process(self, key, value):
        pass


@pytest.mark.parametrize(
    ("bolt", "options", "said"),
    [
        (NoState, {}, "'rules' comes by broadcast\\(\\) to a bolt with one object per key, and NoState does not say"),
        (Decide, {"inputs": lambda a, b: {a: by_key(), b: by_key()}}, "no input comes by broadcast\\(\\)"),
        (Decide, {"inputs": lambda a, b: {a: broadcast(), b: broadcast()}}, "no tuple is left for process"),
        (Decide, {"inputs": lambda a, b: {a: shuffle(), b: broadcast()}}, "goes with by_key\\(\\) alone"),
        (Decide, {"buffer": 10, "overflow": "drop"}, "does not go with a buffer"),
        (Decide, {"replicas": 2}, "does not go with replicas"),
        (Waits, {}, "does not go with an async process"),
    ],
)
def test_what_does_not_go_with_broadcast_state_is_refused_when_it_is_built(bolt, options, said):
    with pytest.raises(TopologyError, match=said):
        small(bolt, **options)


class Quiet(Decide):
    """A rule says how long a key may be quiet."""

    def process(self, key, value):
        self.timer("quiet", value + self.broadcast_state.get("wait", Rule(10)).least)

    def on_timer(self, name, at):
        self.emit(self.key, at)


@pytest.mark.parametrize("seed", depth.chosen(range(4), range(2)))
def test_it_goes_with_timers(seed):
    t = Topology("timers")
    rules = t.spout("rules", Nothing()).timed(lambda value: 0.0, idle=0.01)
    rows = t.spout("rows", Nothing()).timed(float)
    t.bolt("quiet", Quiet, {rows: by_key(), rules: broadcast()}, parallelism=2).sink("out", Landed())
    local = LocalRuntime(
        t,
        spouts={"rules": [("wait", 3)], "rows": [(key, 1) for key in KEYS]},
        seed=seed,
        settings=Settings(delivery="eo"),
    )
    while local.driver.phase != "running":
        local.step()
    local.split("quiet", local.sub_units("quiet")[0])
    local.run_until_drained()
    assert {row.key for row in local.landed("out")} == set(KEYS)
    assert {row.value for row in local.landed("out")} <= {4, 11}


def test_a_copy_may_be_changed_and_all_ways_to_change_the_state_are_guarded():
    state = BroadcastState()
    state.replace({"a": 1})
    for write in (
        lambda: state.update(b=1),
        state.clear,
        lambda: state.pop("a"),
        state.popitem,
        lambda: state.setdefault("b", 1),
        lambda: state.__delitem__("a"),
        lambda: state.__setitem__("b", 1),
        lambda: state.__ior__({"b": 1}),
    ):
        with pytest.raises(TypeError, match="process_broadcast"):
            write()
    assert {**state.copy(), "b": 2} == {"a": 1, "b": 2}
    state.writable = True
    state.update(b=1)
    state |= {"c": 3}
    assert (state.setdefault("d", 4), state.pop("b"), state.popitem()) == (4, 1, ("d", 4))
    del state["a"]
    state.clear()
    assert state == {}
