"""Each tuple with the answer of a service."""

from __future__ import annotations

import asyncio

import pytest

from esault.topology.operators.enrich import Enrich
from tests.unit.topology.operators.recorded import recorded


class Service:
    def __init__(self):
        self.asked, self.fails = [], False

    async def __call__(self, what):
        self.asked.append(what)
        if self.fails:
            raise OSError("away")
        return None if what == "nothing" else f"{what}!"


def run(bolt, *steps):
    """Of each step: the time, and the value that comes."""

    async def come():
        for bolt.clock, value in steps:
            await bolt.process(bolt.key, value)

    asyncio.run(come())
    return bolt.values()


def test_without_a_cache_each_tuple_asks():
    service = Service()
    assert run(recorded(Enrich, service, None), (0.0, "a"), (0.0, "a")) == [("a", "a!")] * 2
    assert service.asked == ["a", "a"]


def test_an_answer_serves_for_its_time_also_none():
    service = Service()
    found = run(
        recorded(Enrich, service, 10.0, lambda value: value[0]),
        *[(at, ("nothing", at)) for at in (0.0, 9.9, 10.0, 19.9)],
    )
    assert found == [(("nothing", at), None) for at in (0.0, 9.9, 10.0, 19.9)] and len(service.asked) == 2


def test_what_has_no_answer_goes_no_further_where_that_is_asked_for():
    assert run(recorded(Enrich, Service(), None, None, True), (0.0, "nothing"), (0.0, "a")) == [("a", "a!")]


def test_an_error_is_no_answer_and_the_next_tuple_asks():
    service = Service()
    bolt = recorded(Enrich, service, 10.0)
    service.fails = True
    with pytest.raises(OSError, match="away"):
        run(bolt, (0.0, "a"))
    service.fails = False
    assert run(bolt, (1.0, "a")) == [("a", "a!")] and service.asked == ["a", "a"]


def test_a_cached_answer_goes_to_another_object():
    service = Service()
    one, two = recorded(Enrich, service, 10.0), recorded(Enrich, service, 10.0)
    assert one.__getstate__() == {}
    run(one, (0.0, "a"))
    two.__setstate__(one.__getstate__())
    assert run(two, (5.0, "a"), (10.0, "a")) == [("a", "a!")] * 2 and len(service.asked) == 2


class Table:
    """Knows what was asked of it once."""

    def __init__(self):
        self.rows = {}

    async def __call__(self, what):
        self.rows[what] = f"{what}!"
        return self.rows[what]

    def known(self, what, context):
        return what in self.rows, self.rows.get(what)


def test_an_answer_that_is_known_needs_no_coroutine_until_it_is_old():
    bolt = recorded(Enrich, Service(), 10.0)
    bolt.clock = 0.0
    assert not bolt.process_known("k", "a") and bolt.values() == []
    run(bolt, (0.0, "a"))
    bolt.clock = 9.9
    assert bolt.process_known("k", "b") and bolt.values() == [("a", "a!"), ("b", "a!")]
    bolt.clock = 10.0
    assert not bolt.process_known("k", "b")


def test_what_has_no_known_answer_goes_no_further_where_that_is_asked_for():
    bolt = recorded(Enrich, Service(), 10.0, None, True)
    run(bolt, (0.0, "nothing"))
    assert bolt.process_known("k", "nothing") and bolt.values() == []


def test_a_value_that_is_refused_is_refused_whatever_is_known():
    bolt = recorded(Enrich, Service(), 10.0, lambda value: value["name"])
    run(bolt, (0.0, {"name": "a"}))
    with pytest.raises(KeyError):
        bolt.process_known("k", {})
    assert bolt.values() == [({"name": "a"}, "a!")]


def test_what_a_table_knows_is_taken_from_it():
    table = Table()
    bolt = recorded(Enrich, table, None, lambda value: value[0])
    assert not bolt.process_known("k", "ab")
    run(bolt, (0.0, "ab"))
    assert bolt.process_known("k", "ac") and bolt.values() == [("ab", "a!"), ("ac", "a!")]
    assert not recorded(Enrich, Service(), None).process_known("k", "ab")
