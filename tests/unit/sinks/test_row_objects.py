"""Rows below a prefix of an object store: the laws of the contract on a folder that fsspec takes for one, and each step in memory."""

from __future__ import annotations

import csv
import json
from concurrent.futures import Future
from itertools import count

import pyarrow.parquet as pq
import pytest
from small_process import run_small

from esault.errors import SinkError
from esault.object_store.store import ObjectStore
from esault.sinks import CsvFile, JsonLines, Parquet, row_objects
from esault.sinks.landing import parts
from esault.sinks.row_objects import RowObjects
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")


def there(path):
    """Pairs that a reader sees, who leaves out what begins with a dot."""
    files = sorted(file for file in path.glob("*.jsonl"))
    return [(row["key"], row["value"]) for file in files for row in map(json.loads, file.read_text().splitlines())]


def laws_of_files():
    assert check_sink(lambda path: JsonLines(f"local://{path}", storage_options={"auto_mkdir": True}), there) == 11


def laws_of_csv():
    def seen(path):
        found = []
        for file in sorted(path.glob("*.csv")):
            with file.open(newline="") as rows:
                found += [(row["key"], int(row["n"])) for row in csv.DictReader(rows)]
        return found

    make = lambda path: CsvFile(f"local://{path}", ("key", "n"), storage_options={"auto_mkdir": True})
    assert check_sink(make, seen) == 11


def laws_of_a_table():
    options = {"auto_mkdir": True}

    def seen(path):
        if not path.exists():
            return []
        tables = [
            pq.read_table(name.removeprefix("local://")) for name in parts(f"local://{path}", storage_options=options)
        ]
        return [(row["key"], row["n"]) for table in tables for row in table.to_pylist()]

    make = lambda path: Parquet(f"local://{path}", {"key": str, "n": int}, storage_options=options)
    assert check_sink(make, seen) == 11


@pytest.mark.slow
@pytest.mark.parametrize("laws", [laws_of_files, laws_of_csv, laws_of_a_table])
def test_the_laws_of_a_sink_hold(laws):
    run_small(laws)


class Place:
    """A prefix of a store in memory, and what a reader finds there."""

    numbers = count()

    def __init__(self):
        self.url = f"memory://bucket{next(Place.numbers)}/rows"
        self.store = ObjectStore.of(SinkError, self.url, None)

    def run(self, **options):
        return RunInfo("r1", "t", "out", **{"lineage": "a/b", **options})

    def sink(self, mode="append", **options):
        """A sink that has begun a run, and is open in its third sub-unit."""
        made = RowObjects(f"{self.url}/", ".jsonl", None)
        made.begin(self.run(**options), mode)
        made.open(Context("out", sub_unit=3, run="r1", lineage="a/b"))
        return made

    def shown(self):
        return sorted(self.store.read(url) for url in self.store.list(self.url) if "/.staged/" not in url)

    def staged(self):
        return list(self.store.list(f"{self.url}/.staged"))


def test_rows_are_shown_by_their_commit_once_however_often_it_comes():
    place = Place()
    sink = place.sink()
    sink.write(b"one\n")
    sink.write(b"two\n")
    handle = sink.prepare().result()
    assert (len(handle), place.shown(), len(place.staged())) == (1, [], 1)
    for _ in range(2):
        sink.commit(1, handle).result()
        assert (place.shown(), [url[-5:] for url in place.staged()]) == ([b"one\ntwo\n"], [".done"])
    for url in list(place.store.list(place.url)):
        if "/.staged/" not in url:
            place.store.remove([url])
    for rows in (None, b"one\ntwo\n"):  # a commit may end between its word and the removal of what was staged
        if rows:
            place.store.write(f"{place.url}/.staged/{handle[0]}", rows)
        sink.commit(1, handle).result()
        assert place.shown() == [], "what a reader took away comes back by no commit"


def test_what_says_that_an_object_is_there_goes_with_a_later_checkpoint():
    place = Place()
    sink = place.sink()
    for epoch in (1, 2):
        sink.write(b"%d" % epoch)
        sink.commit(epoch, sink.prepare().result()).result()
        assert len(place.staged()) == 1
    assert place.shown() == [b"1", b"2"]
    sink.commit(1, ()).result()
    assert len(place.staged()) == 1, "an older checkpoint may be committed again"
    sink.commit(3, None).result()
    assert place.staged() == []


def test_what_was_prepared_and_not_committed_is_part_of_the_next_handle():
    sink = Place().sink()
    sink.write(b"1")
    first = sink.prepare().result()
    sink.write(b"2")
    both = sink.prepare().result()
    assert both[:1] == first and len(both) == 2
    sink.commit(1, first).result()
    assert sink.prepare().result() == both[1:]


def test_rows_that_are_gone_before_their_commit_are_missed():
    place = Place()
    sink = place.sink()
    sink.write(b"1")
    handle = sink.prepare().result()
    place.store.remove(place.staged())
    with pytest.raises(SinkError, match="the rows to commit are gone"):
        sink.commit(1, handle).result()


def test_many_rows_are_staged_before_their_checkpoint_and_waited_for_where_they_are_too_many(monkeypatch):
    begun = []
    monkeypatch.setattr(row_objects, "_SPILL", 4)
    monkeypatch.setattr(row_objects, "_AT_ONCE", 1)
    monkeypatch.setattr(row_objects, "in_background", lambda work: begun.append((work, Future())) or begun[-1][1])
    place = Place()
    sink = place.sink()
    assert [sink.write(data) for data in (b"abc", b"d")] == [None, None]
    waits = sink.write(b"efghi")
    sink.write(b"j")
    prepared = sink.prepare()
    assert begun[2][1] is waits
    for work, future in begun:
        future.set_result(work())
    assert [place.store.read(f"{place.url}/.staged/{name}") for name in prepared.result()] == [b"abcd", b"efghi", b"j"]


@pytest.mark.parametrize(
    ("mode", "resumed", "left"),
    [("append", False, [b"old"]), ("replace", False, []), ("error", True, [b"old"]), ("replace", True, [b"old"])],
)
def test_what_is_there_stays_or_goes_by_the_mode_where_a_run_begins(mode, resumed, left):
    place = Place()
    place.store.write(f"{place.url}/old.jsonl", b"old")
    place.sink(mode, resumed=resumed)
    assert place.shown() == left
    assert place.staged() == [], "what was written to see whether one may is removed"


def test_a_run_that_would_mix_its_rows_with_others_says_so_and_changes_nothing():
    place = Place()
    place.store.write(f"{place.url}/old.jsonl", b"old")
    with pytest.raises(SinkError, match=r"there are objects already, such as .*/old.jsonl"):
        place.sink("error")
    assert place.shown() == [b"old"]


def test_objects_that_are_still_staged_are_nothing_that_a_new_run_would_mix_with():
    place = Place()
    place.store.write(f"{place.url}/.staged/other/old.jsonl", b"old")
    place.sink("error")
    assert place.staged() == []


def test_the_end_of_a_run_removes_what_is_staged_and_that_of_one_that_failed_keeps_it():
    place = Place()
    sink = place.sink()
    sink.write(b"1")
    sink.prepare().result()
    RowObjects(place.url, ".jsonl", None).end(True)  # one that has not begun
    sink.end(False)
    assert len(place.staged()) == 1
    sink.end(True)
    assert place.staged() == []


def test_what_says_that_a_kept_handle_is_committed_is_not_forgotten():
    place = Place()
    sink = place.sink()
    handles = []
    for epoch in (1, 1):
        sink.write(b"1")
        handles.append(sink.prepare().result())
        sink.commit(epoch, handles[-1]).result()
    sink.forget([handles[1], None])
    assert place.staged() == [f"{place.url}/.staged/{handles[1][0]}.done"]


def test_a_check_changes_nothing():
    place = Place()
    RowObjects(place.url, ".jsonl", None).check("replace")
    assert place.store.list(place.url) == {}
