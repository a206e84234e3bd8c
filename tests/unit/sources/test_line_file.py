from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pytest

from esault.errors import SourceError
from esault.sources import line_file
from esault.sources.file_sequence import FileSequence
from esault.sources.line_file import CHUNK, LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.topology.spout import EndOfStream


@pytest.fixture(params=["x.txt", "x.gz"])
def opened(request, tmp_path):
    """Opens a file of this content at an offset, plain and compressed."""
    files = []

    def make(content, offset=0):
        path = tmp_path / request.param
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        file = LineFile(str(path), LineFormat(), LineTally(), offset)
        files.append(file)
        return file

    yield make
    for file in files:
        file.close()


def take_all(file):
    lines = []
    while True:
        rows = file.read(2)
        lines += [line for _, line in rows]
        if not rows and not file.fill() and not file.finish():
            return lines


def test_it_reads_from_any_line_on(opened):
    content = b"one\r\n\ntwo\nthree"
    assert take_all(opened(content)) == ["one", "", "two", "three"]
    assert take_all(opened(content, 5)) == ["", "two", "three"]
    assert take_all(opened(content, 10)) == ["three"]
    assert take_all(opened(content, 15)) == []


def test_it_knows_the_offset_behind_the_rows_taken_and_gives_them_again(opened):
    file = opened(b"one\ntwo\nthree\n")
    assert file.read(5) == []
    assert file.fill()
    assert file.offset == 0
    assert len(file.read(2)) == 2
    assert file.offset == 8
    assert (file.end_of(1), file.end_of(2)) == (8, 4)
    file.unread(1)
    assert file.offset == 4
    assert [line for _, line in file.read(5)] == ["two", "three"]
    assert file.offset == 14


def test_lines_longer_than_a_chunk_are_whole(opened, monkeypatch):
    monkeypatch.setattr(line_file, "CHUNK", 7)
    lines = ["x" * n for n in (3, 30, 0, 7, 6, 8, 100)]
    assert take_all(opened("\n".join(lines).encode())) == lines


def test_a_position_behind_the_end_is_refused_and_leaves_no_file_open(opened):
    with pytest.raises(
        SourceError, match=r"shorter than what an earlier run has read of it \(up to byte 99\); put the"
    ):
        opened(b"one\n", 99)


def test_the_number_of_a_line_is_counted_when_it_is_asked_for(opened):
    file = opened(b"one\ntwo\nthree")
    assert [file.line_number(end) for end in (4, 8, 13)] == [1, 2, 3]


def test_an_error_of_the_disk_is_said_with_the_file(opened, monkeypatch):
    file = opened(b"one\n")

    class Broken:
        def read(self, size):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(file, "_file", Broken())
    with pytest.raises(SourceError, match=r"x\.\w+: reading failed: Input/output error"):
        file.fill()
    monkeypatch.undo()


class TestEndsOfFilesInASequence:
    """A file whose last chunk was short is not asked for more, if that is where it ended when it was measured."""

    @staticmethod
    def rows(names, sizes):
        opened = lambda name, offset: LineFile(name, LineFormat(), LineTally(), offset)
        sequence, rows = FileSequence(names, sizes, opened), []
        with pytest.raises(EndOfStream):
            while True:
                rows += sequence.take(3)
        return rows

    @pytest.mark.parametrize(
        "text", ["", "a", "a\n", "a\nb\nc\nd\ne", "\n\n", "x" * 2 * CHUNK + "\ny", "z" * (CHUNK - 1) + "\n"]
    )
    @pytest.mark.parametrize("measured", [-1, 0, 5])
    def test_all_lines_come_whatever_was_measured(self, tmp_path, text, measured):
        names = [str(tmp_path / each) for each in "ab"]
        for name in names:
            Path(name).write_text(text)
        sizes = {name: max(0, len(text) + measured) for name in names}
        assert self.rows(names, sizes) == 2 * text.splitlines()

    @pytest.mark.parametrize(("more", "asked"), [(0, 1), (1, 2)])
    def test_it_is_read_once_where_it_is_as_long_as_it_was(self, tmp_path, monkeypatch, more, asked):
        path = tmp_path / "a"
        path.write_text("a\nb\n")
        read, sizes = os.read, []
        monkeypatch.setattr(os, "read", lambda number, size: sizes.append(size) or read(number, size))
        assert self.rows([str(path)], {str(path): 4 + more}) == ["a", "b"]
        assert sizes == [CHUNK] * asked

    def test_what_comes_in_pieces_is_read_to_its_end(self, tmp_path, monkeypatch):
        path = tmp_path / "a"
        path.write_text("one\ntwo\nthree")
        read = os.read
        monkeypatch.setattr(os, "read", lambda number, size: read(number, 2))
        assert self.rows([str(path)], {str(path): 13}) == ["one", "two", "three"]

    def test_it_is_closed_once_also_where_it_is_dropped(self, tmp_path, monkeypatch):
        path = tmp_path / "a"
        path.write_text("a\n")
        closed, close = [], os.close
        monkeypatch.setattr(os, "close", lambda number: closed.append(number) or close(number))
        file = LineFile(str(path), LineFormat(), LineTally())
        number = file.fileno()
        file.close()
        file.close()
        del file
        assert closed == [number]
        file = LineFile(str(path), LineFormat(), LineTally())
        number = file.fileno()
        del file
        assert closed[-1] == number and len(closed) == 2
