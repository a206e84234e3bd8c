"""A table at one version: epochs that are in the log, parts that are visible, whose rows may stand twice, and when a snapshot is due."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.entry import Entry, Input, Part, Txn
from esault.sinks.landing.schema import Column
from esault.sinks.landing.state import SNAPSHOT_EVERY, Epochs, TableState, decode_snapshot, encode_snapshot

SCHEMA = (Column("word", "string"), Column("total", "long"))


def part(name, rows=1, base=False):
    return Part(name, rows, 10, base)


def state(*entries, keep_files=True):
    made = TableState(keep_files)
    for entry in entries:
        made.apply(entry)
    return made


def rows(name, app="a", epoch=0, **fields):
    return Entry("rows", txn=Txn(app, epoch), add=(part(name),), **fields)


CREATE = Entry("create", schema=SCHEMA, run="r1")


@given(st.lists(st.integers(0, 30), max_size=40))
def test_epochs_are_a_set_in_as_few_ranges_as_can_be(numbers):
    epochs, plain = Epochs(), set()
    for number in numbers:
        epochs.add(number)
        plain.add(number)
    assert {n for n in range(-1, 33) if n in epochs} == plain
    ranges = epochs.ranges()
    assert {n for low, high in ranges for n in range(low, high + 1)} == plain
    assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges))
    again = Epochs(ranges)
    assert again.ranges() == ranges
    assert all((n in again) == (n in plain) for n in range(33))


def test_parts_come_and_go_in_their_order():
    made = state(CREATE, rows("a", epoch=0), rows("b", epoch=1), rows("c", epoch=2))
    assert (made.version, made.parts, made.written) == (3, 3, True)
    made.apply(Entry("compact", add=(part("d", 2), part("e", 0)), remove=("a", "c")))
    assert list(made.files) == ["b", "d", "e"]
    assert made.parts == 3
    lean = state(CREATE, rows("a"), Entry("compact", add=(part("b"),), remove=("a",)), keep_files=False)
    assert (lean.files, lean.parts) == (None, 1)
    assert not state(CREATE).written


def test_an_epoch_is_known_by_its_writer():
    made = state(CREATE, rows("a", "x", 3))
    assert made.has(Txn("x", 3))
    assert not made.has(Txn("x", 2))
    assert not made.has(Txn("y", 3))


def test_a_table_that_is_replaced_has_nothing_of_before():
    made = state(CREATE, rows("a", "x", 3, newest=9), Entry("replace", schema=SCHEMA[:1], run="r2", add=(part("n"),)))
    assert (list(made.files), made.parts, made.schema, made.run) == (["n"], 1, SCHEMA[:1], "r2")
    assert not made.has(Txn("x", 3))
    assert not made.evolved
    assert made.distinct


def test_a_schema_that_comes_later_means_that_parts_may_have_other_columns():
    made = state(CREATE)
    assert not made.evolved
    made.apply(Entry("begin", run="r2", schema=SCHEMA[:1]))
    assert made.evolved
    assert made.schema == SCHEMA[:1]


@pytest.mark.parametrize(
    ("entries", "distinct"),
    [
        ([], True),
        ([rows("a")], False),  # who writes has not said
        ([rows("a"), Entry("end", run="r1", ok=True, distinct=True)], True),
        ([rows("a"), Entry("end", run="r1", ok=True, distinct=False)], False),
        ([Entry("end", run="r1", ok=True, distinct=False)], True),  # there are no rows
        ([rows("a", distinct=True)], True),  # a job says it at once
        ([rows("a"), Entry("begin", run="r1"), Entry("end", run="r1", ok=True, distinct=True)], True),  # it went on
        ([rows("a"), Entry("begin", run="r2"), Entry("end", run="r2", ok=True, distinct=True)], False),  # r1 never said
        ([rows("a"), Entry("begin", run="r2"), Entry("replace", run="r3", schema=SCHEMA)], True),
    ],
)
def test_rows_are_known_to_come_once_where_each_run_has_said_so(entries, distinct):
    made = state(CREATE, *entries)
    assert made.distinct is distinct
    assert decode_snapshot(encode_snapshot(made), "s").distinct is distinct


def test_the_run_that_writes_has_not_ended_until_it_says_how():
    made = state(CREATE, Entry("end", run="r1", ok=False))
    assert (made.run, made.ended) == ("r1", False)
    made.apply(Entry("begin", run="r2"))
    assert (made.run, made.ended) == ("r2", None)


def test_a_snapshot_is_due_after_so_many_entries_and_more_where_it_is_large():
    made = state(CREATE)
    due = [version for version in range(1, 3 * SNAPSHOT_EVERY) if made.apply(Entry("rows", txn=Txn("a", version)))]
    assert due == [n * SNAPSHOT_EVERY - 1 for n in (1, 2, 3)]
    large = state(Entry("create", schema=SCHEMA, run="r", add=tuple(part(str(n)) for n in range(32 * SNAPSHOT_EVERY))))
    large.snapshot_at = large.version
    dues = [large.apply(Entry("rows")) for _ in range(2 * SNAPSHOT_EVERY)]
    assert dues.index(True) == 2 * SNAPSHOT_EVERY - 1


def test_a_snapshot_is_the_state():
    inputs = (Input("in", 3),)
    key = Entry("create", schema=SCHEMA, run="r1", primary_key=("word",))
    for first in (CREATE, key):
        made = state(
            first, rows("a", "x", 3, newest=70), rows("b", "x", 5), Entry("compact", add=(part("c", 4, True),))
        )
        made.inputs = inputs
        for keep in (True, False):
            read = decode_snapshot(encode_snapshot(made), "s", keep)
            assert read.snapshot_at == made.version
            same = ("version", "schema", "run", "ended", "clean", "unsaid", "evolved", "inputs", "parts", "primary_key")
            assert [getattr(read, name) for name in same] == [getattr(made, name) for name in same]
            assert {app: epochs.ranges() for app, epochs in read.txns.items()} == {"x": [[3, 3], [5, 5]]}
            assert read.files == (made.files if keep else None)
    assert decode_snapshot(encode_snapshot(made), "s").newest == 70


@pytest.mark.parametrize("member", ["version", "schema", "run", "ended", "txns", "files"])
def test_a_snapshot_that_lacks_a_member_is_damaged(member, monkeypatch):
    data = encode_snapshot(state(CREATE, rows("a")))
    value = json.loads(data)
    value.pop("crc32", None)
    del value[member]
    monkeypatch.setattr("esault.sinks.landing.state.unseal", lambda data, path: value)
    with pytest.raises(SinkError, match=r"the/path is damaged: a member is missing or wrong"):
        decode_snapshot(data, "the/path")
