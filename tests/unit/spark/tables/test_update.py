"""The next update of a declared table: new rows of its streams, all of what it reads whole, and why all is read again."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent))
import pyarrow.parquet as pq
from derived_tables import add, part_of

from esault.errors import SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.entry import Entry, Input
from esault.spark.derived import DerivedTable
from esault.spark.reading import read_of
from esault.spark.tables.update import Rows, Update, next_update, resumed

Inputs = tuple[Input, ...]


def numbers(rows: Rows) -> list[int]:
    """Those that stand in the parts to read."""
    return [n for name in rows.names for n in pq.read_table(os.path.join(rows.folder, name)).column("n").to_pylist()]


def needed(update: Update | None) -> Update:
    assert update is not None
    return update


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Two streams, and a table that is read whole."""
    for first, name in enumerate(("sales", "refunds", "rates")):
        add(tmp_path / name, [first * 100])
    return {name: str(tmp_path / name) for name in ("sales", "refunds", "rates")}


STREAMS = ("sales", "refunds")


def test_the_first_time_all_is_read_then_what_is_new(folders: dict[str, str]) -> None:
    first = needed(next_update(folders, STREAMS, "r", ()))
    assert first.why == "it is the first time" and (first.count, first.parts) == (2, 2)
    assert [numbers(first.rows[name]) for name in folders] == [[0], [100], [200]]
    assert next_update(folders, STREAMS, "r", first.inputs) is None
    add(Path(folders["refunds"]), [101, 102])
    second = needed(next_update(folders, STREAMS, "r", first.inputs))
    # of the stream with nothing new no row, and of what is read whole all of them
    assert second.why is None and (second.count, second.parts) == (2, 1)
    assert [numbers(second.rows[name]) for name in folders] == [[], [101, 102], [200]]
    assert read_of(second.inputs, "sales") == read_of(first.inputs, "sales")
    assert next_update(folders, STREAMS, "r", second.inputs) is None


def test_what_is_read_whole_alone_makes_no_update_of_streams(folders: dict[str, str]) -> None:
    done = needed(next_update(folders, STREAMS, "r", ())).inputs
    add(Path(folders["rates"]), [201])
    assert next_update(folders, STREAMS, "r", done) is None
    add(Path(folders["sales"]), [1])
    update = needed(next_update(folders, STREAMS, "r", done))
    assert [numbers(update.rows[name]) for name in folders] == [[1], [], [200, 201]]


@pytest.mark.parametrize(("changed", "first"), [("sales", 0), ("refunds", 100)])
def test_one_stream_that_was_replaced_has_all_be_read_whole(folders: dict[str, str], changed: str, first: int) -> None:
    done = needed(next_update(folders, STREAMS, "r", ())).inputs
    for name in STREAMS:
        add(Path(folders[name]), [first + 7], whole=name == changed)
    update = needed(next_update(folders, STREAMS, "r", done))
    assert update.why == f"{changed} was replaced"
    other = next(name for name in STREAMS if name != changed)
    assert numbers(update.rows[changed]) == [first + 7]
    assert numbers(update.rows[other]) == [{"sales": 0, "refunds": 100}[other], first + 7]


def test_why_all_is_read_again_is_said(folders: dict[str, str]) -> None:
    done = needed(next_update(folders, STREAMS, "r", ())).inputs
    assert needed(next_update(folders, STREAMS, "other", done)).why == "what it is to do has changed"
    assert needed(next_update(folders, STREAMS, "r", done, full=True)).why == "it was asked for"
    more = {**folders, "returns": folders["rates"]}
    update = needed(next_update(more, (*STREAMS, "returns"), "r", done))
    assert update.why == "it is the first time" and update.count == 3


def test_a_table_without_streams_is_made_anew_where_one_has_changed(folders: dict[str, str]) -> None:
    first = needed(next_update(folders, (), "r", ()))
    assert (first.why, first.count, first.parts) == ("it is the first time", 3, 3)
    assert next_update(folders, (), "r", first.inputs) is None
    assert needed(next_update(folders, (), "r", first.inputs, full=True)).why == "it was asked for"
    assert needed(next_update(folders, (), "other", first.inputs)).why == "what it is to do has changed"
    for name in ("rates", "sales"):
        add(Path(folders[name]), [7], inputs=(Input("from", 9, name),))
    update = needed(next_update(folders, (), "r", first.inputs))
    assert update.why == "sales, rates changed" and update.count == 5


def test_a_table_may_be_called_rules(folders: dict[str, str]) -> None:
    folders = {"sales": folders["sales"], "rules": folders["rates"]}
    first = needed(next_update(folders, ("sales",), "r", ()))
    assert next_update(folders, ("sales",), "r", first.inputs) is None
    add(Path(folders["sales"]), [1])
    update = needed(next_update(folders, ("sales",), "r", first.inputs))
    assert update.why is None and [numbers(update.rows[name]) for name in folders] == [[1], [200]]
    view = needed(next_update(folders, (), "r", ()))
    assert next_update(folders, (), "r", view.inputs) is None


def test_a_compaction_is_no_change_of_a_table_that_is_read_whole(folders: dict[str, str]) -> None:
    add(Path(folders["rates"]), [201], inputs=(Input("from", 1, "a"),))
    done = needed(next_update(folders, (), "r", ())).inputs
    table = DerivedTable(folders["rates"])
    old = tuple(table.state().files or ())
    table_log(folders["rates"]).append(Entry("compact", add=(part_of(table, [200, 201]),), remove=old))
    assert next_update(folders, (), "r", done) is None


def test_an_update_that_was_interrupted_is_told_again_though_more_has_come(folders: dict[str, str]) -> None:
    done = needed(next_update(folders, STREAMS, "r", ())).inputs
    add(Path(folders["sales"]), [1])
    begun = needed(next_update(folders, STREAMS, "r", done))
    add(Path(folders["sales"]), [2])
    add(Path(folders["refunds"]), [101])
    again = needed(resumed(folders, STREAMS, "r", done, begun.inputs))
    assert again == begun
    # what follows is read behind it
    rest = needed(next_update(folders, STREAMS, "r", again.inputs))
    assert [numbers(rest.rows[name]) for name in STREAMS] == [[2], [101]]


def test_all_is_read_again_where_parts_that_are_new_were_put_together_and_are_gone(folders: dict[str, str]) -> None:
    done = needed(next_update(folders, STREAMS, "1", ())).inputs
    table = add(Path(folders["sales"]), [1])
    until = needed(next_update(folders, STREAMS, "1", done)).inputs
    old = tuple(part.path for part in table_log(folders["sales"]).files())
    table_log(folders["sales"]).append(Entry("compact", add=(part_of(table, [0, 1]),), remove=old))
    update = needed(next_update(folders, STREAMS, "1", done))
    assert (update.why, numbers(update.rows["sales"])) == (None, [1])  # from the part of before, which is there
    for path in old:
        os.remove(os.path.join(folders["sales"], path))
    update = needed(next_update(folders, STREAMS, "1", done))
    assert update.why == "parts of sales are gone, since they were put together with others"
    assert (numbers(update.rows["sales"]), numbers(update.rows["refunds"])) == ([0, 1], [100])
    with pytest.raises(SinkError, match="parts that sales had are gone"):
        next_update(folders, STREAMS, "1", done, True, until)
    assert resumed(folders, STREAMS, "1", done, until) is None


def test_an_update_that_can_no_longer_be_told_is_not_told(folders: dict[str, str]) -> None:
    done = needed(next_update(folders, STREAMS, "r", ())).inputs
    add(Path(folders["sales"]), [1])
    begun = needed(next_update(folders, STREAMS, "r", done)).inputs
    assert resumed(folders, (), "r", done, begun) is None
    assert resumed(folders, STREAMS, "r", (), begun) is None
    assert resumed(folders, STREAMS, "other", done, begun) is None
    nowhere = tuple(Input(i.name, i.version + 90, i.mark) if i.name == "sales" else i for i in begun)
    assert resumed(folders, STREAMS, "r", done, nowhere) is None
    add(Path(folders["rates"]), [201], inputs=(Input("from", 9, "b"),))
    assert resumed(folders, STREAMS, "r", done, begun) is None, "what is read whole is another one now"
    add(Path(folders["sales"]), [5], whole=True)
    assert resumed(folders, STREAMS, "r", done, begun) is None


@settings(max_examples=30)
@given(st.data())
def test_updates_together_read_each_row_that_is_there_once(data: Any) -> None:
    with tempfile.TemporaryDirectory() as base:
        folders = {name: f"{base}/{name}" for name in STREAMS}
        there: dict[str, list[int]] = {name: [] for name in STREAMS}
        read: dict[str, list[int]] = {name: [] for name in STREAMS}
        done: Inputs = ()
        next_number = 0
        for name in STREAMS:
            add(Path(folders[name]), [])
        for _ in range(data.draw(st.integers(1, 8))):
            name = data.draw(st.sampled_from(STREAMS))
            what = data.draw(st.sampled_from(["add", "add", "replace", "compact", "update", "killed"]))
            if what in ("add", "replace"):
                rows = [next_number, next_number + 1]
                next_number += 2
                add(Path(folders[name]), rows, whole=what == "replace")
                there[name] = rows if what == "replace" else there[name] + rows
            elif what == "compact":
                table = DerivedTable(folders[name])
                old = tuple(table.state().files or ())
                table_log(folders[name]).append(
                    Entry("compact", add=(part_of(table, sorted(there[name])),), remove=old)
                )
            else:
                update = next_update(folders, STREAMS, "r", done)
                if what == "killed" and update is not None:  # its rows are shown nowhere; it is told again
                    again = resumed(folders, STREAMS, "r", done, update.inputs)
                    assert again == (None if update.why else update)
                    continue
                if update is not None:
                    for each in STREAMS:
                        read[each] = (read[each] if update.why is None else []) + numbers(update.rows[each])
                    done = update.inputs
                assert {each: sorted(rows) for each, rows in read.items()} == {
                    each: sorted(rows) for each, rows in there.items()
                }
                assert next_update(folders, STREAMS, "r", done) is None
