"""A topology with other ends: which sinks are set beside, and what becomes of a spout, a sink and a path of dead letters."""

from __future__ import annotations

from esault import Bolt, Topology, dead_letter, shuffle
from esault.sinks import Collect
from esault.sources import Items
from esault.topology.rewired import is_beside, sinks_of, spouts_of, with_other_ends, with_sinks_beside


class Parts(Items):
    parallel = True


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def topology():
    t = Topology("mine", moved={"old": "same", "here": "mine"})
    rows = t.spout("rows", Parts([("a", 1)]), parallelism=2, max_parallelism=4)
    rows.sink("raw", Collect())
    bolt = rows.bolt("same", Same, shuffle(), parallelism=3, on_error=dead_letter("dead.jsonl"))
    bolt.map(lambda value: value + 1, on_error=dead_letter("step.jsonl")).sink("out", Collect())
    t.spout("more", Items([("b", 2)])).sink("last", Collect())
    return t


def test_the_names_of_spouts_and_sinks():
    assert spouts_of(topology()) == ["rows", "more"]
    assert sorted(sinks_of(topology())) == ["last", "out", "raw"]


def test_a_sink_is_set_beside_each_spout_and_each_sink():
    made = {}

    def beside(what):
        return lambda name: made.setdefault((what, name), Collect())

    changed = with_sinks_beside(topology(), beside("spout"), beside("sink"))
    assert set(made) == {("spout", "rows"), ("spout", "more"), ("sink", "raw"), ("sink", "out"), ("sink", "last")}
    names = sinks_of(changed)
    assert sorted(name for name in names if not is_beside(name)) == ["last", "out", "raw"]
    assert sorted(name for name in names if is_beside(name)) == [
        "last~shadow",
        "more~read",
        "out~shadow",
        "raw~shadow",
        "rows~read",
    ]
    now = {each.name: each.sink for each in changed.plan().sinks}
    assert now["out~shadow"] is made["sink", "out"]
    assert now["rows~read"] is made["spout", "rows"]


def test_all_ends_are_others_and_the_rest_is_as_it_was():
    spouts = {name: Items([(name, 0)]) for name in ("rows", "more")}
    ends = {name: Collect() for name in ("raw", "out", "last")}
    plan = with_other_ends(topology(), "other", spouts.get, ends.get, "elsewhere/{}".format).plan()
    assert (plan.name, dict(plan.moved)) == ("other", {"old": "same"})
    assert {name: unit.spout for name, unit in plan.units.items() if unit.kind == "spout"} == spouts
    assert {each.name: each.sink for each in plan.sinks} == ends
    rows, same = plan.units["rows"], plan.units["same"]
    assert (rows.parallelism, rows.max_parallelism, same.parallelism) == (1, 1, 3)
    assert rows.on_error.path is None, "what has no dead letters gets none"
    (step,) = [step for outlet in same.streams[""].walk() for step in outlet.steps]
    assert [same.on_error.path, step.on_error.path] == ["elsewhere/dead.jsonl", "elsewhere/step.jsonl"]
