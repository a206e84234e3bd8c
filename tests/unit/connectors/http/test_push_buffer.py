"""The newest rows for clients, each by its number."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.connectors.http.push_buffer import PushBuffer


@given(st.integers(1, 6), st.integers(0, 20), st.integers(0, 7))
def test_the_newest_are_there_in_order(size, rows, most):
    buffer = PushBuffer(size)
    for number in range(rows):
        buffer.add("e", str(number))
    assert (buffer.first, buffer.next) == (max(1, rows - size + 1), rows + 1)
    found = buffer.since(buffer.first, most)
    assert [row.data for row in found] == [str(n) for n in range(rows)][max(0, rows - size) :][:most]
    assert list(buffer.since(buffer.next, most)) == []


@given(st.integers(1, 4), st.integers(1, 12))
def test_a_client_goes_on_behind_the_row_that_it_had(size, rows):
    buffer = PushBuffer(size)
    ids = []
    for number in range(rows):
        buffer.add("", str(number))
        ids.append(buffer.id(buffer.since(buffer.next - 1, 1)[0]))
    assert [buffer.behind(id) for id in ids] == list(range(2, rows + 2))


@pytest.mark.parametrize("number", ["", "x", "-1", "+1", "1.0", " 1", "²", "١", "2", "99", "9" * 5000, "1-1"])
def test_ids_that_this_buffer_never_gave_are_known_as_that(number):
    buffer = PushBuffer(3)
    buffer.add("", "row")
    token = buffer.id(buffer.since(1, 1)[0]).rpartition("-")[0]
    assert buffer.behind(f"{token}-1") == 2
    assert buffer.behind(f"{token}-{number}") is None
    assert buffer.behind(number) is None


def test_ids_of_another_buffer_are_told_apart():
    one, two = PushBuffer(3), PushBuffer(3)
    one.add("", "row")
    two.add("", "row")
    assert two.behind(one.id(one.since(1, 1)[0])) is None


def test_all_that_wait_are_woken_and_one_that_left_is_no_trouble():
    async def run():
        buffer = PushBuffer(3)
        waiting = [asyncio.ensure_future(buffer.more()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.sleep(0)
        buffer.add("", "row", lost=4)
        buffer.wake()
        buffer.wake()
        await asyncio.gather(*waiting, return_exceptions=True)
        return [each.cancelled() for each in waiting], buffer.since(1, 9)[0].lost

    assert asyncio.run(run()) == ([False, True, False], 4)
