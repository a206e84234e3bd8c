"""The same topologies on LocalRuntime and on real actors: the same rows land."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

from esault import TopologyFailed
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.testing import LocalRuntime
from esault.topology.locate import locate

pytestmark = pytest.mark.slow
PLACE = Path(__file__).with_name("scenarios.py")
SCENARIOS = [
    "keyed",
    "shuffled",
    "broadcast_to_all",
    "one_object",
    "half_keys",
    "own_grouping",
    "stepped",
    "reduced",
    "two_inputs",
    "beside_the_main_stream",
    "batched",
    "finished",
    "look_alikes",
    "all_values",
    "skipped",
    "three_deep",
    "bounded_with_room",
    "windowed",
    "in_order",
]


class Silent:
    def line(self, mark, text):
        pass

    def notice(self, text):
        pass

    def update(self, snapshot):
        pass


def rows(of):
    return {name: Counter((repr(k), repr(v)) for k, v in found) for name, found in of.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_runtimes_land_the_same_rows(name):
    located = locate(f"{PLACE}:{name}")
    plan = located.build({}).plan()
    local = LocalRuntime(plan)
    local.run_until_drained()
    expected = rows({sink.name: [(r.key, r.value) for r in local.landed(sink.name)] for sink in plan.sinks})
    assert any(expected.values())
    report = Session(Request(located, {}, view=Silent(), settings=Settings(ackers=len(name) % 2))).run()
    assert rows(report.collected) == expected
    assert report.roots.replayed == 0
    for unit, counts in local.report().units.items():
        assert report.units[unit].tuples_in == counts.tuples_in
        assert report.units[unit].tuples_out == counts.tuples_out
        assert (report.units[unit].arrivals, report.units[unit].dropped) == (counts.arrivals, 0)


def test_on_both_runtimes_a_failure_has_the_exception_of_the_user_s_code_as_its_cause():
    located = locate(f"{PLACE}:failing")
    for run in (
        LocalRuntime(located.build({}).plan()).run_until_drained,
        Session(Request(located, {}, view=Silent())).run,
    ):
        with pytest.raises(TopologyFailed) as caught:
            run()
        cause = caught.value.__cause__
        assert (type(cause).__name__, str(cause), cause.code) == ("NoTown", "no town Nowhere", 404)


def test_a_script_that_runs_its_own_topology_catches_its_own_class(monkeypatch):
    place = importlib.util.spec_from_file_location("__main__", PLACE)
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    monkeypatch.setitem(sys.modules, "__main__", script)
    with pytest.raises(TopologyFailed) as caught:
        Session(Request(locate(f"{PLACE}:failing"), {}, view=Silent())).run()
    assert type(caught.value.__cause__) is script.NoTown


@pytest.mark.parametrize("what", ["none", "float", "list", "inside"])
def test_on_both_runtimes_a_key_that_cannot_be_one_is_refused_in_one_set_of_words_however_wide_the_unit(what):
    located = locate(f"{PLACE}:bad_key")
    said = set()
    for p in (1, 3):
        with pytest.raises(TopologyFailed) as caught:
            # A LocalRuntime looks at each emit by itself, and names the tuple that was processed.
            settings = Settings(watch_values=False)
            LocalRuntime(located.build({"what": what, "p": p}).plan(), settings=settings).run_until_drained()
        said.add(str(caught.value))
    with pytest.raises(TopologyFailed) as caught:
        Session(Request(located, {"what": what}, view=Silent())).run()
    said.add(str(caught.value))
    assert len(said) == 1
    assert said.pop().startswith("unit 'late' emitted a tuple with")


@pytest.mark.parametrize("delivery", ["alo", "none", "eo"])
@pytest.mark.parametrize("runtime", ["local", "actors"])
def test_in_both_runtimes_what_does_not_fit_is_dropped_and_nothing_else_is_missing(delivery, runtime, tmp_path):
    located = locate(f"{PLACE}:overloaded")
    settings = Settings(delivery=delivery)
    if runtime == "local":
        local = LocalRuntime(located.build({}).plan(), settings=settings)
        local.run_until_drained()
        report, landed = local.report(), [(r.key, r.value) for r in local.landed("out")]
    else:
        state = tmp_path / "state" if delivery == "eo" else None
        report = Session(Request(located, {}, view=Silent(), settings=settings, state=state)).run()
        landed = report.collected["out"]
    worker, echo = report.units["worker"], report.units["echo"]
    assert worker.arrivals == 7000 == worker.tuples_in + worker.dropped
    assert (echo.arrivals, echo.dropped, worker.backlog) == (worker.tuples_in, 0, 0)
    assert worker.dropped > 0
    # Each key's total counts those of its rows that were processed, once each.
    totals = {}
    for key, total in landed:
        totals.setdefault(key, []).append(total)
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in totals.values())
    assert len(landed) == worker.tuples_in
    assert (report.roots.replayed, report.roots.open) == (0, 0)
