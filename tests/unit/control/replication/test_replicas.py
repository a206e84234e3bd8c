"""Units with active replicas: which settings go with them, which are down, and whom mergers tell."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from one_unit import unit_plan

from esault.control.replication.replicas import check_settings, down, make_units, mergers
from esault.errors import UsageError
from esault.messages.settings import Settings
from esault.topology.plan import Plan


def plan(replicas=2):
    names = [f"count#{i}" for i in range(replicas)]
    units = {
        name: unit_plan(name, replicas=replicas, replica_index=i, replica_id=i + 1, original="count")
        for i, name in enumerate(names)
    }
    return Plan("t", {"up": unit_plan("up", kind="spout"), **units, "merged": unit_plan("merged", merger=True)})


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"delivery": "eo"}, "--checkpoint: leave replicas out where state must count each tuple once"),
        ({"delivery": "none"}, "--acks off: acks say when a row need not be remembered"),
        ({"ackers": 2}, "--ackers 2: their roots are tracked by the owners"),
    ],
)
def test_settings_that_do_not_go_with_replicas_are_refused_and_go_without_them(settings, why):
    with pytest.raises(UsageError, match=rf"unit 'count#0' has replicas, which do not go together with {why}"):
        check_settings(plan(), Settings(**settings))
    check_settings(Plan("t", {"count": unit_plan()}), Settings(**settings))
    check_settings(plan(), Settings())


def test_replicas_of_one_unit_know_each_other_and_no_one_else():
    units = make_units(plan(), {}, Settings(), lambda *args, **fields: None)
    assert list(units) == ["up", "count#0", "count#1", "merged"]
    assert {unit.name for unit in units["count#0"].all_replicas} == {"count#0", "count#1"}
    assert [unit.name for unit in units["merged"].all_replicas] == ["merged"]
    assert [unit.name for unit in units["up"].all_replicas] == ["up"]


def test_accounts_of_replicas_that_are_not_whole_and_sub_units_of_mergers():
    def unit(replica_id, is_down=False, merger=False, built=()):
        subs = {i: SimpleNamespace(incarnation=i, built=True if i in built else None) for i in (1, 2)}
        return SimpleNamespace(plan=SimpleNamespace(replica_id=replica_id, merger=merger), down=is_down, subs=subs)

    assert down([unit(3, True), unit(1, True), unit(2)]) == (1, 3)
    assert mergers([unit(1, built=(1, 2)), unit(0, merger=True, built=(2,))]) == (2,)
