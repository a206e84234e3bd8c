"""A time that cannot be had, in bolts that ask for none and set timers by it."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key, fail, single, skip
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Quiet(Bolt):
    """Says when a key was quiet for five seconds."""

    def process(self, key, value):
        self.timer("quiet", value["at"] + 5)

    def on_timer(self, name, at):
        self.emit(self.key, at)


def _watched(time, grouping=by_key, on_error=fail(), rows=200):
    t = Topology("quiet")
    values = [(f"k{i % 7}", {"at": float(i)}) for i in range(rows)]
    values[rows // 2] = ("k0", {"at": float(rows // 2), "broken": True})
    t.spout("rows", Items(values), time=time).bolt("quiet", Quiet, grouping=grouping(), on_error=on_error).sink(
        "out", Collect()
    )
    return t


@pytest.mark.parametrize("grouping", [by_key, single])
@pytest.mark.parametrize(
    ("time", "why"),
    [
        (lambda value: value["time"], "KeyError: 'time'"),
        (lambda value: None, "time gave None"),
        (lambda value: "12:00" if value.get("broken") else value["at"], "time gave '12:00'"),
    ],
)
def test_a_tuple_without_a_time_is_an_error_also_where_only_timers_go_by_it(time, why, grouping):
    with pytest.raises(TopologyFailed, match=why):
        LocalRuntime(_watched(time, grouping)).run_until_drained()


@pytest.mark.parametrize("grouping", [by_key, single])
def test_such_tuples_follow_on_error(grouping):
    def time(value):
        return value["time"] if value.get("broken") else value["at"]

    local = LocalRuntime(_watched(time, grouping, skip()))
    local.run_until_drained()
    right = LocalRuntime(_watched(lambda value: value["at"], grouping))
    right.run_until_drained()
    assert local.report().units["quiet"].errors == 1
    assert right.report().units["quiet"].errors == 0
    found, wanted = (sorted((row.key, row.value) for row in each.landed("out")) for each in (local, right))
    assert found and set(wanted) - set(found) <= {(key, at) for key, at in wanted if at == 105.0}
