from __future__ import annotations

import errno
import gzip

import pytest

from esault.errors import SourceError
from esault.sources import line_file
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally


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
