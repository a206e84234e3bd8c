"""Questions for state: who is asked, and when the answer is whole."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.control.run.state_queries import StateQueries, keys_of
from esault.errors import UsageError
from esault.messages.control import PeekedState
from esault.routing.ring import INT_MAX, position
from esault.routing.table import Move, OutputTable


def unit(objects="key", kind="bolt", subs=(1, 2, 3)):
    return SimpleNamespace(
        name="count",
        plan=SimpleNamespace(kind=kind, objects=objects),
        subs=dict.fromkeys(subs),
        table=OutputTable.even(list(subs)),
        change=None,
        replication=SimpleNamespace(busy=False),
    )


class Asked(StateQueries):
    """Keeps what it sends."""

    def __init__(self):
        self.sent: list = []
        super().__init__(self.sent.append)


@pytest.fixture
def queries():
    return Asked()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("cat", ("cat",)),
        ("7", ("7", 7)),
        ('["a", [1]]', ('["a", [1]]', ("a", (1,)))),
        ("1.5", ("1.5",)),
        ("true", ("true", True)),
        ("null", ("null",)),
        ("{}", ("{}",)),
    ],
)
def test_what_is_typed_may_be_the_text_or_what_it_says_as_json(text, keys):
    found = keys_of(text)
    assert found == keys and list(map(type, found)) == list(map(type, keys))


def test_the_owner_of_a_key_is_asked_and_no_other(queries):
    asked = unit()
    answer = queries.ask(lambda: asked, ("cat",), "", 5)
    ((incarnation, message),) = queries.sent
    assert incarnation == asked.table.owner(position("cat"))
    assert answer() is None
    queries.answered(PeekedState(incarnation, message.number, 9, (('"cat"', '{"n": 3}'),)))
    assert answer() == {"done": True, "keys": 9, "found": [{"key": "cat", "state": {"n": 3}}]}


def test_all_are_asked_for_some_keys(queries):
    asked = unit()
    answer = queries.ask(lambda: asked, (), "c", 2)
    assert [incarnation for incarnation, _ in queries.sent] == [1, 2, 3]
    number = queries.sent[0][1].number
    queries.answered(PeekedState(1, number, 4, (('"ca"', "1"), ('"cb"', "2"))))
    queries.answered(PeekedState(2, number, 1, (('"cc"', "3"),)))
    queries.answered(PeekedState(2, number, 1, (('"cc"', "3"),)))  # twice: counts once
    assert answer() is None
    queries.answered(PeekedState(3, number, 0, ()))
    assert answer() == {"done": True, "keys": 5, "found": [{"key": "ca", "state": 1}, {"key": "cb", "state": 2}]}
    queries.answered(PeekedState(3, number, 1, ()))  # too late


def test_one_that_is_gone_is_not_waited_for_also_where_all_went_back(queries):
    units = [unit()]
    answer = queries.ask(lambda: units[-1], (), "", 2)
    units.append(unit(subs=(7, 8)))
    assert "ask again" in answer()["error"]


@pytest.mark.parametrize("why", ["change", "copy"])
def test_while_keys_move_it_waits(queries, why):
    asked = unit()
    if why == "change":
        asked.change = object()
    asked.replication.busy = why == "copy"
    answer = queries.ask(lambda: asked, (), "", 5)
    assert answer() is None
    assert not queries.sent, "the new owner has no state yet, and the old one may have no more"
    asked.change, asked.replication.busy = None, False
    assert answer() is None
    (number,) = {message.number for _, message in queries.sent}
    for incarnation, _ in list(queries.sent):
        queries.answered(PeekedState(incarnation, number, 1, ()))
    assert answer() == {"done": True, "keys": 3, "found": []}


@pytest.mark.parametrize(
    ("keys", "moves", "waits"),
    [
        (("cat",), "elsewhere", False),
        (("cat",), "there", True),
        (("7", 7), "elsewhere", True),  # one of them is on its way
        ((), "elsewhere", True),
    ],
)
def test_in_a_change_in_subscales_a_key_that_does_not_move_just_now_is_not_waited_for(queries, keys, moves, waits):
    asked = unit()
    place = position(keys[-1] if keys else "cat")
    away = [Move(0, place - 1, 1, 2), Move(place + 1, INT_MAX, 1, 2)]
    asked.change = SimpleNamespace(moves=[Move(place, place, 1, 2)] if moves == "there" else away)
    answer = queries.ask(lambda: asked, keys, "", 5)
    assert answer() is None
    assert (not queries.sent) is waits
    asked.change = None
    answer()
    owners = {asked.table.owner(position(key)) for key in keys} or {1, 2, 3}
    assert {incarnation for incarnation, _ in queries.sent} == owners


@pytest.mark.parametrize(
    ("asked", "limit"), [(unit("sub-unit"), 5), (unit(kind="spout"), 5), (unit(), 0), (unit(), 1001)]
)
def test_what_cannot_be_asked_is_refused(queries, asked, limit):
    with pytest.raises(UsageError):
        queries.ask(lambda: asked, (), "", limit)
    assert not queries.sent


def test_what_a_sub_unit_cannot_show_is_said(queries):
    asked = unit()
    answer = queries.ask(lambda: asked, ("cat",), "", 5)
    ((incarnation, message),) = queries.sent
    queries.answered(PeekedState(incarnation, message.number, 0, (), "the state cannot be shown: ValueError: no"))
    assert answer()["error"].endswith("the state cannot be shown: ValueError: no")
