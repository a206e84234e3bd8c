"""A read of no rows takes none, and what cannot be read is refused before anything is opened: all sources of files alike."""

from __future__ import annotations

import io
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from esault.errors import SourceError, TopologyError
from esault.sources import (
    ArrowFiles,
    Cron,
    CsvFiles,
    Directory,
    Items,
    JsonFiles,
    Paced,
    ParquetFiles,
    Table,
    TextFiles,
    Ticker,
)
from esault.sources.dead_letter_files import DeadLetter, DeadLetterFiles, mark_sent, parse_line
from esault.testing.split_contract import pairs
from esault.topology.context import Context
from esault.topology.split_source import SplitSource

ROWS = pa.table({"n": [1, 2, 3]})


def arrow(write):
    file = io.BytesIO()
    write(ROWS, file)
    return file.getvalue()


FILES = {
    TextFiles: b"a\nb\nc\n",
    Directory: b"a\nb\nc\n",
    JsonFiles: b'{"n": 1}\n{"n": 2}\n{"n": 3}\n',
    CsvFiles: b"n\n1\n2\n3\n",
    ParquetFiles: arrow(pq.write_table),
    ArrowFiles: arrow(feather.write_feather),
}


def opened(make, tmp_path):
    """A spout, or the reader of the one split of a source."""
    if make in FILES:
        (tmp_path / "file").write_bytes(FILES[make])
        spout = make(tmp_path / "file")
    else:
        spout = make()
    times = itertools.count(1e9, 10)
    spout.context = Context("spout", now=lambda: next(times))
    spout.open(spout.context)
    if isinstance(spout, SplitSource):
        (name,) = spout.splits()
        return spout.open_split(name, None)
    return spout


@pytest.mark.parametrize(
    "make",
    [
        *FILES,
        lambda: Items([("a", 1), ("b", 2), ("c", 3)]),
        lambda: Table(ROWS),
        lambda: Ticker(1, count=3),
    ],
)
def test_a_read_of_nothing_gives_nothing_and_takes_nothing(make, tmp_path):
    reader = opened(make, tmp_path)
    found = []
    for _ in range(9):
        assert pairs(reader.read(0)) == []
        found += pairs(reader.read(1))
        if len(found) == 3:
            break
    assert len(found) == 3
    assert pairs(reader.read(0)) == []
    reader.close()


@pytest.mark.parametrize("source", FILES)
def test_what_is_no_path_is_refused_with_the_name_of_the_source(source):
    with pytest.raises(TopologyError, match=f"^{source.__name__}: "):
        source(7)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CsvFiles("a", on_bad_line="drop"), 'on_bad_line=.drop.: write "fail" or "skip"'),
        (lambda: CsvFiles("a", delimiter=""), "CsvFiles: delimiter="),
        (lambda: TextFiles("s3://b/in", follow=True), "objects of a store do not grow"),
        (lambda: Table([1, 2]), "Table: list is no table"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(TopologyError, match=said):
        make()


def test_a_dead_letter_without_a_tuple_has_no_rows_and_one_that_cannot_be_read_is_said():
    letter = lambda **record: DeadLetter("dead.jsonl", {"id": "d1", "unit": "count", **record})
    assert (letter().rows(), letter().can_be_sent) == ([], False)
    with pytest.raises(SourceError, match="dead.jsonl: the tuple of dead letter d1 cannot be read here"):
        letter(packed="no base64").rows()


@pytest.mark.parametrize("line", [b'{"id": "d1", "un', b"[1]", b'{"id": "d1"}', b'{"unit": "count"}'])
def test_what_is_no_dead_letter_is_left_out(line):
    assert parse_line("dead.jsonl", line) is None


def test_one_that_was_undone_is_left_out_and_one_that_was_sent_is_marked():
    record = {"id": "d1", "unit": "count"}
    line = json.dumps(record).encode()
    assert parse_line("dead.jsonl", line, undone=[record]) is None
    assert [parse_line("dead.jsonl", line, sent).sent for sent in ([], ["d1"])] == [False, True]


def test_dead_letters_that_cannot_be_read_or_marked_are_said(tmp_path):
    (tmp_path / "dead.jsonl").mkdir()
    with pytest.raises(SourceError, match="dead letters cannot be read"):
        list(DeadLetterFiles(tmp_path).read())
    with pytest.raises(SourceError):
        mark_sent(str(tmp_path / "none" / "dead.jsonl"), ["d1"])


def test_a_date_that_never_comes_is_no_line_of_a_crontab():
    pytest.importorskip("cronsim")
    with pytest.raises(TopologyError, match="is no crontab line"):
        Cron("0 0 30 2 *").check()


def test_a_paced_spout_knows_no_next_time_before_it_began_and_what_is_within_it_has_no_pace():
    within = Items([("a", 1)])
    spout = Paced(within, rate=10)
    assert spout.next_due() is None
    assert spout.without_pace() is within


def test_a_table_that_has_fewer_rows_than_were_read_of_it_is_another_one():
    table = Table(ROWS)
    table.open(Context("rows"))
    with pytest.raises(SourceError, match="an earlier run has read 4 rows, and now there are only 3"):
        table.seek(4)
    table.seek(3)
    assert table.progress() == (3.0, 3.0)
