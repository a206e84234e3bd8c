from __future__ import annotations

import asyncio
import copy
import threading

import pytest

from esault import SourceError, TopologyError
from esault.connectors.lookup import Lookup


class Numbers(Lookup):
    """Knows the numbers below 100 by their texts; `lets` holds the thread up where it is clear."""

    def __init__(self, **options):
        given = {"max_rows": 10, "expire_after_write": None, "cache_missing_key": True, "max_batch": 1000}
        super().__init__("Numbers", **{**given, **options})
        self.asked = []
        self.fails = None

    def _fetch(self, keys):
        self.asked.append(list(keys))
        if self.fails is not None:
            raise self.fails
        return {key: {"n": int(key)} for key in keys if int(key) < 100}

    def _disconnect(self):
        pass


def looked_up(table, *keys):
    async def all_of_them():
        return await asyncio.gather(*[table(key) for key in keys], return_exceptions=True)

    return asyncio.run(all_of_them())


def test_what_was_found_is_asked_once_and_so_is_what_was_not():
    table = Numbers()
    assert looked_up(table, "1", "200") == [{"n": 1}, None]
    assert looked_up(table, "1", "200") == [{"n": 1}, None]
    assert sorted(key for keys in table.asked for key in keys) == ["1", "200"]


def test_none_is_not_asked():
    table = Numbers()
    assert looked_up(table, None) == [None] and table.asked == []


def test_keys_that_wait_go_into_one_question_each_once():
    table = Numbers(max_rows=1000)
    held, begun, plain = threading.Event(), threading.Event(), table._fetch

    def slowly(keys):
        begun.set()
        assert held.wait(60)
        return plain(keys)

    table._fetch = slowly

    async def many():
        first = asyncio.ensure_future(table("0"))
        await asyncio.to_thread(begun.wait, 60)
        others = [asyncio.ensure_future(table(str(n % 50))) for n in range(1, 200)]
        await asyncio.sleep(0)
        held.set()
        return [found["n"] for found in await asyncio.gather(first, *others)]

    assert asyncio.run(many()) == [n % 50 for n in range(200)]
    assert table.asked == [["0"], [str(n) for n in range(1, 50)]]


def test_a_question_has_no_more_keys_than_it_may():
    table = Numbers(max_rows=0, max_batch=7)
    looked_up(table, *map(str, range(60)))
    assert max(map(len, table.asked)) <= 7 and sum(map(len, table.asked)) == 60


def test_those_used_longest_ago_leave_a_full_cache():
    table = Numbers(max_rows=2)
    for key in ("1", "2", "1", "3", "1", "2"):
        looked_up(table, key)
    assert table.asked == [["1"], ["2"], ["3"], ["2"]]


def test_what_was_found_expires():
    now = [0.0]
    table = Numbers(expire_after_write=10, clock=lambda: now[0])
    for now[0] in (0.0, 9.9, 10.0, 19.9, 20.0):
        looked_up(table, "1")
    assert len(table.asked) == 3


def test_what_is_missing_is_asked_again_where_that_is_not_kept():
    table = Numbers(cache_missing_key=False)
    looked_up(table, "200")
    looked_up(table, "200")
    assert len(table.asked) == 2


def test_an_error_goes_to_all_that_wait_and_is_not_kept():
    table = Numbers()
    table.fails = SourceError("no server")
    first, second = looked_up(table, "1", "1")
    assert str(first) == str(second) == "no server" and first is not second
    table.fails = ValueError("a mistake")
    assert "Numbers: ValueError: a mistake" in str(looked_up(table, "1")[0])
    table.fails = None
    assert looked_up(table, "1") == [{"n": 1}]


def test_a_row_that_is_changed_is_not_the_cache_s_own():
    table = Numbers()
    looked_up(table, "1")[0]["n"] = 5
    looked_up(table, "1")[0]["n"] = 6
    assert looked_up(table, "1") == [{"n": 1}]


def test_what_cannot_be_a_key_is_named():
    assert "[1] is no key" in str(looked_up(Numbers(), [1])[0])


def test_a_copy_has_the_options_and_a_cache_of_its_own():
    table = Numbers(max_rows=3)
    looked_up(table, "1")
    other = copy.deepcopy(table)
    assert looked_up(other, "1") == [{"n": 1}] and len(other.asked) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_rows": -1}, "max_rows=-1"),
        ({"max_batch": 0}, "max_batch=0"),
        ({"max_rows": True}, "max_rows=True"),
        ({"expire_after_write": 0}, "expire_after_write"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(TopologyError, match=said):
        Numbers(**options)


def test_what_the_cache_has_is_known_and_counted_and_what_it_has_not_is_neither():
    counted = []

    class Counter:
        def inc(self):
            counted.append(1)

    class Context:
        def counter(self, name, what, **labels):
            assert (name, labels) == ("lookup_cache_hits", {"table": "Numbers"})
            return Counter()

    table, context = Numbers(), Context()
    assert table.known("1", context) == (False, None) and table.asked == []
    looked_up(table, "1", "200")
    known, found = table.known("1", context)
    assert known and found == {"n": 1} and table.known("200", context) == (True, None)
    found["n"] = 2  # its own
    assert table.known("1", context) == (True, {"n": 1}) and len(counted) == 3
    assert table.known(None, context) == (True, None) and len(counted) == 3
    with pytest.raises(TypeError):
        table.known(["1"], context)
