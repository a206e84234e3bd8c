from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing import staging as module
from esault.sinks.landing.buffer import Buffer
from esault.sinks.landing.schema import parse_columns
from esault.sinks.landing.staging import Staging

SCHEMA = parse_columns("T", {"k": str, "n": int}, [])


class Disk:
    """Parts are lists of numbers; `refusals` writes to come are refused."""

    def __init__(self) -> None:
        self.refusals = 0
        self.synced = 0

    def write(self, buffer: Buffer) -> list[list[int]]:
        if self.refusals:
            self.refusals -= 1
            raise SinkError("the disk is full")
        return [buffer.table()["n"].to_pylist()]

    def sync(self) -> None:
        self.synced += 1


class Later:
    """A thread that does its work when it is told."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def __call__(self, work: Any) -> Any:
        self.work.append(work)

    def do(self) -> Any:
        return self.work.pop(0)()


def made(in_thread: Any = lambda work: work()) -> tuple[Staging[list[int]], Disk]:
    disk = Disk()
    return Staging(Buffer("T", SCHEMA, "run"), disk.write, disk.sync, in_thread), disk


def add(staging: Staging[list[int]], *numbers: int) -> None:
    staging.buffer.add(["a"] * len(numbers), list(numbers), 1.0, None)
    staging.spill()


def test_rows_that_come_meanwhile_belong_to_the_next_epoch():
    thread = Later()
    staging, disk = made(thread)
    add(staging, 1, 2)
    assert staging.prepare(list) is None  # there is a future in its place
    add(staging, 3)
    assert (thread.do(), disk.synced) == ([[1, 2]], 1)
    staging.prepare(list)
    assert thread.do() == [[3]]


def test_an_epoch_without_rows_needs_no_thread():
    thread = Later()
    staging, disk = made(thread)
    assert staging.prepare(len) == 0
    assert not thread.work
    assert not disk.synced


def test_what_a_disk_refused_comes_with_the_next_epoch_in_order():
    thread = Later()
    staging, disk = made(thread)
    add(staging, 1)
    staging.prepare(list)
    add(staging, 2)
    disk.refusals = 1
    with pytest.raises(SinkError, match="the disk is full"):
        thread.do()
    staging.prepare(list)
    assert thread.do() == [[1], [2]]
    assert len(staging.buffer) == 0


def test_much_of_one_epoch_becomes_several_parts(monkeypatch):
    monkeypatch.setattr(module, "_SPILL", 1)
    monkeypatch.setattr("esault.sinks.landing.buffer._CHUNK", 2)
    staging, disk = made()
    add(staging, 1, 2)
    add(staging, 3)
    assert staging.prepare(list) == [[1, 2], [3]]
    disk.refusals = 1
    with pytest.raises(SinkError):
        add(staging, 4, 5)
    assert staging.prepare(list) == [[4, 5]]


@given(st.lists(st.sampled_from(["row", "row", "prepare", "do", "refuse", "spill"]), max_size=60))
def test_each_row_is_in_one_part_whatever_the_disk_refuses(steps):
    thread = Later()
    staging, disk = made(thread)
    number, landed = 0, []

    def do() -> None:
        try:
            landed.extend(number for part in thread.do() for number in part)
        except SinkError:
            pass

    for step in steps:
        if step == "row":
            add(staging, number)
            number += 1
        elif step == "prepare":
            while thread.work:  # as the engine: one after the other
                do()
            staging.prepare(list)
        elif step == "do" and thread.work:
            do()
        elif step == "refuse":
            disk.refusals += 1
        elif step == "spill" and len(staging.buffer) and not disk.refusals:
            staging._parts += staging._write(staging.buffer)
            staging.buffer.clear()
    disk.refusals = 0
    for _ in range(2):
        while thread.work:
            do()
        if (found := staging.prepare(list)) is not None:
            landed.extend(number for part in found for number in part)
    assert sorted(landed) == list(range(number))
