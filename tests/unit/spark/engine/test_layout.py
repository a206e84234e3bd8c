"""Where units run, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import BatchBolt, Bolt, Topology, TopologyError, UsageError, by_key, dead_letter, shuffle, single
from esault.messages.settings import Settings
from esault.sinks import Collect, JsonLines
from esault.sources import Directory, Items, MicroBatches
from esault.spark.engine.adapted import adapted, notices
from esault.spark.engine.landing import last_sinks, sinks_remain
from esault.spark.engine.layout import Layout, lay_out, partition_of, stateless
from esault.spark.engine.refusals import check_options, check_topology, refusals
from esault.topology.locate import locate
from esault.windows import Idle, TumblingWindow

FLOWS = str(Path(__file__).with_name("flows.py"))


def plan(name: str = "everything"):
    return locate(f"{FLOWS}:{name}").build({}).plan()


def test_units_without_state_run_where_their_senders_run():
    layout = lay_out(plan(), {}, 4)
    assert layout.inlined("split") and layout.inlined("upper") and layout.inlined("picky")
    assert not layout.inlined("count") and not layout.inlined("lines")


def test_a_unit_with_state_has_a_level_above_its_senders():
    layout = lay_out(plan(), {}, 4)
    levels = {unit: i for i, level in enumerate(layout.levels, 1) for unit in level}
    assert (levels["count"], levels["both"], levels["seen"]) == (1, 2, 1)
    assert "split" not in levels


def test_units_with_keys_get_a_task_for_each_core_and_others_what_they_ask_for():
    layout = lay_out(plan(), {"half": 3}, 4)
    assert layout.tasks == {
        "seen": 1, "count": 4, "both": 4, "lengths": 4, "half": 3, "all": 2, "own": 2, "sum": 4
    }  # fmt: skip
    assert layout.partitions == 4


@given(st.integers(1, 40), st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_each_task_has_a_group_of_its_own_in_the_partition_it_is_meant_for(partitions, widths):
    tasks = {f"u{i}": n for i, n in enumerate(widths)}
    layout = Layout({}, tasks, (tuple(tasks),), partitions)
    groups = list(layout.groups.values())
    assert len({*groups, *layout.passing}) == len(groups) + partitions
    assert [partition_of(g, partitions) for g in groups] == [i % partitions for i in range(len(groups))]
    assert [partition_of(g, partitions) for g in layout.passing] == list(range(partitions))


def test_places_are_those_of_sparks_hash():
    # spark.range(8).selectExpr("pmod(hash(cast(id as int)), 200)") of Spark 4.3
    assert [partition_of(i, 200) for i in range(8)] == [191, 43, 174, 51, 102, 66, 49, 107]


class Plain(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Late(Bolt):
    def process(self, key, value):
        self.last = value


def written(t: Topology) -> tuple[dict[str, set[str]], bool]:
    """Unit with state -> the sinks that its tasks write; whether others remain."""
    plan = adapted(t)
    layout = lay_out(plan, {}, 2)
    return {unit: set(last_sinks(plan, layout, unit)) for unit in layout.tasks}, sinks_remain(plan, layout)


def test_tasks_of_the_last_level_write_the_sinks_that_only_they_have_rows_for(tmp_path: Path) -> None:
    def begun() -> tuple[Topology, Any, Any]:
        t = Topology("sinks")
        numbers = t.spout("numbers", Items([(1, 1)]))
        return t, numbers, numbers.bolt("first", Late, by_key())

    def sink(name: str) -> JsonLines:
        return JsonLines(tmp_path / f"{name}.jsonl")

    t, numbers, first = begun()
    first.bolt("plain", Plain, shuffle()).sink("behind", sink("behind"))
    first.sink("at", sink("at"))
    assert written(t) == ({"first": {"behind", "at"}}, False)

    t, numbers, first = begun()
    first.sink("early", sink("early"))  # what is written here may be computed again for `last`
    first.bolt("last", Late, single()).sink("late", sink("late"))
    assert written(t) == ({"first": set(), "last": {"late"}}, True)

    t, numbers, first = begun()
    t.bolt("both", Plain, {numbers: shuffle(), first: shuffle()}).sink("mixed", sink("mixed"))
    assert written(t) == ({"first": set()}, True)

    t, numbers, first = begun()
    first.sink("here", Collect())
    assert written(t) == ({"first": set()}, False)

    t = Topology("without")
    t.spout("numbers", Items([(1, 1)])).sink("only", sink("only"))
    assert written(t) == ({}, True)


class Nested(Bolt):
    def process(self, key, value):
        def keep():
            self.last = value

        keep()


class Started(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value): ...


class Ending(Bolt):
    def process(self, key, value): ...

    def finish(self): ...


class Opened(Bolt):
    def open(self, context):
        self.name = context.unit

    def process(self, key, value): ...


class Cached(Bolt):
    def open(self, context):
        self.cache = {}

    def process(self, key, value):
        if value not in self.cache:
            self.cache[value] = len(self.cache)
        self.emit(key, self.cache[value])


class Seeing(Bolt):
    def open(self, context):
        self.seen = set()

    def process(self, key, value):
        self.seen.add(value)


class Reads(Bolt):
    def open(self, context):
        self.table = {1: "one"}

    def process(self, key, value):
        self.emit(key, self.table.get(value))


class Passing(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Keeping(BatchBolt):
    def process_batch(self, rows):
        self.keyed.update(rows)


@pytest.mark.parametrize(
    ("factory", "options", "expected"),
    [
        (Plain, {}, True),
        (Plain, {"grouping": by_key()}, False),
        (Plain, {"grouping": single()}, False),
        (Plain, {"tick_every": 1}, False),
        (Late, {}, False),
        (Nested, {}, False),
        (Started, {}, False),
        (Ending, {}, False),
        (Opened, {}, True),
        (Cached, {}, False),
        (Seeing, {}, False),
        (Reads, {}, True),
        (Passing, {}, True),
        (Keeping, {}, False),
    ],
)
def test_a_bolt_has_state_where_something_of_it_could_stay(factory, options, expected):
    t = Topology("t")
    t.spout("s", Items([(1, 1)])).bolt("b", factory, **{"grouping": shuffle(), **options})
    assert stateless(t.plan().units["b"]) is expected


def test_what_spark_has_in_a_way_of_its_own_is_said_and_left_out():
    t = Topology("t")
    source = t.spout("s", MicroBatches(Items([(1, 1)])))
    source.bolt("twins", Plain, grouping=by_key(), replicas=2).sink("out", _sink())
    source.bolt("small", Plain, grouping=by_key(), buffer=10, overflow="drop")
    source.bolt("few", Plain, grouping=by_key(), keys_in_memory=10)
    on_spark = adapted(t)
    check_topology(on_spark)
    assert list(on_spark.units) == ["s", "twins", "small", "few"]
    assert isinstance(on_spark.units["s"].spout, Items)
    assert [said.partition(":")[0] for said in notices(t)] == ["unit 's'", "unit 'twins'", "unit 'small'", "unit 'few'"]
    assert notices(locate(f"{FLOWS}:everything").build({})) == []


def test_what_spark_cannot_do_is_refused_with_reason_and_remedy(tmp_path):
    t = Topology("t")
    t.spout("s", Directory(tmp_path, every=1)).bolt("b", Plain, grouping=shuffle()).sink("out", _sink())
    with pytest.raises(
        TopologyError,
        match=r"^t cannot run on the Spark engine:\n- unit 's': Directory looks for new files, .* write every=None",
    ):
        check_topology(adapted(t))
    assert refusals(plan()) == []


def _sink():
    from esault.sinks import Collect

    return Collect()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"settings": Settings(delivery="none")}, "--acks off: the Spark engine has no acks"),
        ({"settings": Settings(ackers=2)}, "--ackers 2"),
        (
            {"settings": Settings(hourly_budget=3.5)},
            "--budget 3.5/h: the Spark engine has no slots",
        ),
        (
            {"settings": Settings(budget=3)},
            "--budget 3: the Spark engine has no slots; say how many cores with --master",
        ),
        ({"settings": Settings(objectives=("p99 < 1 s",))}, "--objective 'p99 < 1 s': Spark cannot change"),
        ({"slots": 4}, "--master 'local\\[4\\]'"),
        ({"policies": {"": "flink"}}, "--policy flink: Spark cannot change"),
        ({"policies": {"count": "ds2"}}, "--policy count=ds2: "),
        ({"policies": {"nobody": "auto"}}, "there is no unit 'nobody'"),
        ({"parallelism": {"nobody": 2}}, "there is no unit 'nobody'"),
        ({"parallelism": {"count": 0}}, "cannot have parallelism 0"),
    ],
)
def test_options_that_mean_nothing_on_spark_are_refused(options, text):
    given_ = {"settings": Settings(), "parallelism": {}, "policies": {}, "slots": 16, **options}
    with pytest.raises(UsageError, match=text):
        check_options(plan(), **given_)
    check_options(plan(), Settings(), {"count": 3}, {"count": "none"}, 16)


def test_the_default_policy_is_left_out_with_one_line(tmp_path):
    policies = {"": "auto", "count": "auto"}
    check_options(plan(), Settings(), {}, policies, 16)
    (said,) = notices(locate(f"{FLOWS}:everything").build({}), policies.values())
    assert said.startswith("policy auto is left out: Spark cannot change")


def test_dead_letters_are_no_matter():
    t = Topology("t")
    t.spout("s", Items([(1, 1)])).bolt("b", Plain, grouping=shuffle(), on_error=dead_letter("d.jsonl"))
    assert refusals(t.plan()) == []


def test_time_that_goes_on_in_silence_is_refused():
    t = Topology("t")
    rows = t.spout("s", Items([(1, 1)]), time=float, idle=Idle(5, advance=True))
    rows.window("w", Plain, TumblingWindow(10)).sink("out", _sink())
    assert ["unit 's': Idle(advance=True)" in why for why in refusals(t.plan())] == [True]
