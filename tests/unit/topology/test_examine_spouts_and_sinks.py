"""Spouts and sinks as `examine` looks at them; its bolts are in test_examine."""

from __future__ import annotations

import re

import pytest

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.examine import examine_sink, examine_spout
from esault.topology.sink import Sink
from esault.topology.spout import EndOfStream, Spout


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def spout(**attributes):
    attributes.setdefault("read", lambda self, limit: [])
    return type("Mine", (Spout,), attributes)()


def sink(**attributes):
    attributes.setdefault("write", lambda self, rows: None)
    return type("Mine", (Sink,), attributes)()


def generator(self, *arguments):
    yield 1


async def coroutine(self, *arguments):
    return 1


class Numbers(Spout):
    def __init__(self, n=3):
        self.next, self.n = 0, n

    def read(self, limit):
        if self.next == self.n:
            raise EndOfStream
        self.next += 1
        return [(self.next, self.next)]

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class NoRead(Spout):
    pass


def test_a_good_spout_passes():
    numbers = Numbers()
    assert examine_spout(numbers, "numbers") is numbers
    assert examine_spout(spout(), "plain")


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (
            Numbers,
            "unit 'lines': a spout is passed as an object, not as a class; write t.spout('lines', Numbers(...))",
        ),
        (NoRead(), "unit 'lines': NoRead does not define read(self, limit), which gives the tuples"),
        ([1, 2], "unit 'lines': [1, 2] (list) is no spout; pass an object of a class derived from Spout"),
        (sink(), "unit 'lines': Mine is a sink, not a spout"),
        (Same(), "unit 'lines': Same is a bolt, not a spout"),
        (
            spout(position=lambda self: 0),
            "unit 'lines': Mine defines position without seek(self, position); going on after a restart takes both",
        ),
        (spout(seek=lambda self, p: None), "Mine defines seek without position(self)"),
        (spout(read=lambda self: []), "Mine.read must take (self, limit)"),
        (spout(read=generator), "Mine.read yields, so that calling it does nothing; return a list instead"),
        (spout(read=coroutine), "Mine.read is async, which no hook of a spout can be; write a plain def"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(thing, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_spout(thing, "lines")


class Columns(Sink):
    wants_id = True

    def write_columns(self, keys, values, time, ids):
        pass


class NoWrite(Sink):
    def prepare(self, epoch):
        return None


@pytest.mark.parametrize("thing", [sink(), Columns(), sink(prepare=lambda self, epoch: 1)])
def test_a_good_sink_passes(thing):
    assert examine_sink(thing, "table") is thing


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (
            Columns,
            "sink 'table': a sink is passed as an object, not as a class; write .sink('table', Columns(...))",
        ),
        (NoWrite(), "sink 'table': NoWrite defines neither write(self, rows) nor write_columns(...)"),
        (print, "is no sink; pass an object of a class derived from Sink"),
        (spout(), "sink 'table': Mine is a spout, not a sink"),
        (sink(write=lambda self: None), "sink 'table': Mine.write must take (self, rows)"),
        (sink(commit=lambda self, epoch: None), "sink 'table': Mine.commit must take (self, epoch, handle)"),
        (sink(write=generator), "Mine.write yields, so that calling it does nothing; write a plain def instead"),
        (
            sink(check=coroutine),
            "Mine.check is async, which of a sink only begin, close, commit, commit_all, end, open, ",
        ),
    ],
)
def test_what_cannot_be_written_to_is_refused_with_what_to_write(thing, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_sink(thing, "table")


@pytest.mark.parametrize("name", ["due", "next_due", "lag", "progress"])
def test_an_attribute_of_a_spout_that_stands_where_a_hook_is_called_is_refused(name):
    polls = spout()
    setattr(polls, name, 0.0)
    with pytest.raises(
        TopologyError, match=rf"unit 'rows': Mine sets self.{name}, and {name}\(\) is called by the engine"
    ):
        examine_spout(polls, "rows")


def test_so_is_one_of_a_sink_and_a_function_is_not():
    writes = sink()
    writes.destination = "a table"
    with pytest.raises(TopologyError, match=r"sink 'out': Mine sets self.destination, and destination\(\) is called"):
        examine_sink(writes, "out")
    writes.destination = lambda: "a table"
    assert examine_sink(writes, "out") is writes
