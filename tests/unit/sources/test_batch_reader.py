"""A split of batches: read on behind a position, a file that is another one by now, and one that is far."""

from __future__ import annotations

from concurrent.futures import Future

import pyarrow as pa
import pytest

from esault.errors import SourceError
from esault.sources import batch_reader
from esault.sources.arrow_columns import ArrowColumns
from esault.sources.batch_reader import BatchReader
from esault.topology.spout import EndOfStream


class File:
    """Groups of batches of whole numbers."""

    name = "numbers.arrow"
    first = 0

    def __init__(self, *groups, known=True):
        self._groups = [[pa.RecordBatch.from_pydict({"n": each}) for each in group] for group in groups]
        self.last = len(groups) if known else None
        self.shape = ArrowColumns("Numbers", None, None).of(self.name, pa.schema([("n", pa.int64())]), None)
        self.closed = 0

    def batches(self, group):
        return iter(self._groups[group]) if group < len(self._groups) else None

    def close(self):
        self.closed += 1


GROUPS = ([[0, 1, 2], [3]], [], [[4, 5]])


def all_of(reader, limit):
    """What comes until the end, with the position behind each read."""
    found = []
    while True:
        try:
            rows = reader.read(limit)
        except EndOfStream:
            return found
        found.append(([row["n"] for row in rows.values.to_pylist()], reader.position()))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_behind_each_position_comes_what_came_behind_it(known, limit):
    file = File(*GROUPS, known=known)
    reader = BatchReader(lambda: file, None)
    assert (reader.read(0), reader.position()) == ([], (0, 0))
    whole = all_of(reader, limit)
    assert [n for rows, _ in whole for n in rows] == [0, 1, 2, 3, 4, 5]
    assert file.closed == 1
    for i, (_, position) in enumerate(whole):
        after = all_of(BatchReader(lambda: File(*GROUPS, known=known), position), limit)
        assert [n for rows, _ in after for n in rows] == [n for rows, _ in whole[i + 1 :] for n in rows]


@pytest.mark.parametrize(("position", "known"), [((0, 9), True), ((3, 1), False)])
def test_a_file_with_fewer_rows_than_were_read_of_it_is_another_one(position, known):
    with pytest.raises(SourceError, match=rf"an earlier run has read {position[1]} rows of its group {position[0]}"):
        BatchReader(lambda: File(*GROUPS, known=known), position).read(9)


@pytest.fixture
def later(monkeypatch):
    """Work that is asked for in the background, done when the test says so."""
    asked: list = []
    monkeypatch.setattr(batch_reader, "_MOMENT", 0)
    monkeypatch.setattr(batch_reader, "in_background", lambda work: asked.append((work, Future())) or asked[-1][1])

    def do():
        work, future = asked.pop(0)
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    return asked, do


def test_a_read_does_not_wait_for_a_file_that_is_far(later):
    asked, do = later
    file = File([[0, 1]])
    reader = BatchReader(lambda: file, None, far=True)
    assert reader.position() == (-1, 0), "where it begins is not known yet"
    assert [list(reader.read(9)) for _ in range(2)] == [[], []]
    assert len(asked) == 1, "one step at a time"
    do()
    assert reader.read(9).values.to_pylist() == [{"n": 0}, {"n": 1}]
    assert reader.read(9) == []
    do()
    assert reader.read(9) == []
    do()
    with pytest.raises(EndOfStream):
        reader.read(9)


def test_a_file_that_is_far_is_closed_when_who_reads_it_is_done(later):
    _, do = later
    file = File([[0, 1]])
    reader = BatchReader(lambda: file, None, far=True)
    reader.close()
    reader.read(9)
    reader.close()
    assert file.closed == 0
    do()
    assert file.closed == 1


def test_what_the_background_finds_is_raised_by_the_read(later):
    def opened():
        raise SourceError("it is gone")

    reader = BatchReader(opened, None, far=True)
    assert reader.read(9) == []
    later[1]()
    with pytest.raises(SourceError, match="it is gone"):
        reader.read(9)
