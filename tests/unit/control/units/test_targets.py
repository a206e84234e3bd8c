"""The units that a unit sends to: its sub-units register with them and get their tables."""

from __future__ import annotations

from one_unit import OneUnit

from esault.messages.control import (
    Connect,
    Register,
    Registered,
    SenderSwitched,
    Switched,
    Table,
    TableFor,
    Unregister,
)


def table(target, version=1):
    return Table(target, version, ((0, 900),), {900: ("d", "e", 1)})


def wiring():
    one = OneUnit(targets=("a", "b"), parallelism=1)
    one.unit.start(one.now)
    one.built(1)
    one.sent()
    one.told()
    one.unit.register()
    return one


def test_all_sub_units_are_registered_with_each_target():
    assert wiring().sent(Register) == [
        (("unit", "a"), Register("count", (1,))),
        (("unit", "b"), Register("count", (1,))),
    ]


def test_the_first_tables_go_together_in_the_order_in_which_they_came():
    one = wiring()
    one.say(Registered("a", 1, table("a")))
    one.say(TableFor(1, table("a", 2)))
    assert one.sent(Connect) == []
    one.say(Registered("b", 1, table("b")))
    ((to, connect),) = one.sent(Connect)
    assert to == 1
    assert [(t.target, t.version) for t in connect.tables] == [("a", 1), ("a", 2), ("b", 1)]


def test_it_is_wired_once_all_tables_are_confirmed_and_the_targets_hear_of_it():
    one = wiring()
    one.say(Registered("a", 1, table("a")), Registered("b", 1, table("b")), Switched(1, "a", 1))
    assert not one.unit.wired
    one.say(Switched(1, "b", 1))
    assert one.unit.wired
    assert one.told() == ["wired"]
    assert one.sent(SenderSwitched) == [(("unit", "a"), SenderSwitched(1, 1)), (("unit", "b"), SenderSwitched(1, 1))]


def test_a_later_table_goes_at_once():
    one = wiring()
    one.connect(1)
    one.sent()
    one.say(TableFor(1, table("a", 2)))
    assert one.sent() == [(1, table("a", 2))]


def test_a_dead_sub_unit_is_unregistered():
    one = OneUnit(targets=("a",)).running()
    one.unit.died(1, "killed", one.now)
    assert one.sent(Unregister) == [(("unit", "a"), Unregister(1, False))]


def test_without_targets_it_is_wired_from_the_start():
    one = OneUnit()
    one.unit.start(one.now)
    one.built(1, 2)
    one.unit.register()
    assert one.told() == ["built", "wired"]
