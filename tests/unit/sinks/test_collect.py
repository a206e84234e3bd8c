from __future__ import annotations

import errno
import os
from datetime import datetime
from decimal import Decimal

import pytest

from esault.errors import PayloadError, SinkError
from esault.payload.codec import Codec
from esault.sinks import collect
from esault.sinks.collect import Collect, read_collected
from esault.topology.context import Context
from esault.topology.sink import Row


def opened(run_dir=None, unit="sink", sub_unit=0):
    sink = Collect()
    sink.context = Context(unit, sub_unit=sub_unit, run_dir=None if run_dir is None else str(run_dir))
    sink.open(sink.context)
    return sink


def write(sink, *pairs):
    sink.write([Row(key, value, 5.0) for key, value in pairs])


def commit(sink, epoch=0):
    sink.commit(epoch, sink.prepare(epoch))


def test_without_a_run_folder_committed_rows_are_in_the_object():
    sink = opened()
    write(sink, ("a", 1))
    sink.write_columns(["b"], [2], 5.0, None)
    assert sink.rows == []
    handle = sink.prepare(0)
    assert sink.rows == []
    sink.commit(0, handle)
    sink.commit(0, handle)
    assert sink.rows == [("a", 1), ("b", 2)]
    assert sink.prepare(1) is None
    sink.commit(1, None)


def test_values_of_all_types_come_back_as_they_were(tmp_path):
    value = {
        "t": (1, (2, b"x")),
        "d": datetime(2026, 1, 2),
        "n": Decimal("1.10"),
        "s": {1, "a"},
        "big": 2**100,
        "none": None,
    }
    sink = opened(tmp_path)
    write(sink, (("k", 1), value))
    commit(sink)
    assert read_collected(str(tmp_path), "sink") == [(("k", 1), value)]


def test_rows_come_by_epoch_and_sub_unit_in_the_order_in_which_they_were_written(tmp_path):
    sinks = [opened(tmp_path, sub_unit=n) for n in (2, 10)]
    for epoch in (9, 10):
        for sink in reversed(sinks):
            write(sink, *(((epoch, sink.context.sub_unit), i) for i in range(3)))
            commit(sink, epoch)
    assert read_collected(str(tmp_path), "sink") == [
        ((epoch, n), i) for epoch in (9, 10) for n in (2, 10) for i in range(3)
    ]


def test_sinks_are_told_apart_whatever_their_names(tmp_path):
    names = ["a", "a/b", "..", ".", "ä", "A b"]
    for name in names:
        sink = opened(tmp_path / "run", name)
        write(sink, (name, 1))
        commit(sink)
    assert [read_collected(str(tmp_path / "run"), name) for name in names] == [[(name, 1)] for name in names]
    assert os.listdir(tmp_path) == ["run"]
    assert read_collected(str(tmp_path / "run"), "other") == []


def test_many_rows_and_large_ones_are_packed_in_pieces(tmp_path, monkeypatch):
    sink = opened(tmp_path)
    write(sink, *((i, i) for i in range(25_000)))
    commit(sink)
    assert read_collected(str(tmp_path), "sink") == [(i, i) for i in range(25_000)]

    class Small(Codec):
        def pack(self, obj):
            if len(obj) > 3:
                raise PayloadError("too large to travel at once")
            return super().pack(obj)

    monkeypatch.setattr(collect, "Codec", Small)
    sink = opened(tmp_path, "small")
    write(sink, *((i, i) for i in range(100)))
    commit(sink)
    assert read_collected(str(tmp_path), "small") == [(i, i) for i in range(100)]


def test_a_value_that_cannot_travel_is_named_by_its_key_and_leaves_no_file(tmp_path):
    sink = opened(tmp_path)
    write(sink, ("a", 1), ("b", object()))
    with pytest.raises(SinkError, match=r"the value of key 'b' cannot be collected: .*object"):
        sink.prepare(0)
    assert os.listdir(tmp_path / "collect" / "sink") == []


def test_an_epoch_that_was_given_up_is_part_of_the_next(tmp_path):
    for sink in (opened(tmp_path), opened()):
        write(sink, ("a", 1))
        given_up = sink.prepare(1)
        write(sink, ("b", 2))
        handle = sink.prepare(2)
        sink.commit(2, handle)
        sink.commit(1, given_up)
        rows = sink.rows if sink.context.run_dir is None else read_collected(str(tmp_path), "sink")
        assert rows == [("a", 1), ("b", 2)]


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    sink = opened(tmp_path)
    write(sink, ("a", 1))

    def full(codec, rows):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(collect, "_pack", full)
    with pytest.raises(SinkError, match=r"\.draft: cannot be written \(No space left on device\); the disk is full"):
        sink.prepare(0)
    assert os.listdir(tmp_path / "collect" / "sink") == []
    monkeypatch.undo()
    commit(sink)
    assert read_collected(str(tmp_path), "sink") == [("a", 1)]


def test_rows_that_are_gone_are_not_taken_for_committed(tmp_path):
    sink = opened(tmp_path)
    write(sink, ("a", 1))
    handle = sink.prepare(0)
    for name in os.listdir(tmp_path / "collect" / "sink"):
        os.unlink(tmp_path / "collect" / "sink" / name)
    with pytest.raises(SinkError, match="the rows to commit are gone; leave the run's folder alone while it runs"):
        sink.commit(0, handle)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "collect").write_text("a file")
    sink = opened(tmp_path)
    write(sink, ("a", 1))
    with pytest.raises(SinkError, match="cannot be written"):
        sink.prepare(0)
