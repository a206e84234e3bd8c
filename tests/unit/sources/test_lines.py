from __future__ import annotations

import os

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources.lines import Lines
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, has_position


@pytest.fixture
def pipe():
    """A spout that reads a pipe, and the pipe's other end."""
    receiving, sending = os.pipe()
    spouts = []

    def make(**arguments):
        spout = Lines(receiving, **arguments)
        spout.check()
        spout.open(Context("lines"))
        spouts.append(spout)
        return spout, sending

    yield make
    for spout in spouts:
        spout.close()
    for fd in (receiving, sending):
        try:
            os.close(fd)
        except OSError:
            pass


def test_lines_come_as_they_are_written_and_reading_never_waits(pipe):
    spout, sending = pipe()
    assert spout.read(10) == []
    os.write(sending, b"one\ntwo\nthr")
    assert spout.read(1) == [(None, "one")]
    assert spout.read(10) == [(None, "two")]
    assert spout.read(10) == []
    os.write(sending, b"ee\n")
    assert spout.read(10) == [(None, "three")]
    assert spout.progress() is None


def test_columns_are_the_lines_of_read_and_end_where_it_does(pipe):
    spout, sending = pipe()
    assert len(spout.read_columns(10)) == 0
    os.write(sending, b"one\ntwo\nthree")
    os.close(sending)
    found = spout.read_columns(1)
    assert (found.keys, found.values) == (None, ["one"])
    assert spout.read(10) == [(None, "two")]
    assert spout.read_columns(10).values == ["three"]
    with pytest.raises(EndOfStream):
        spout.read_columns(10)


def test_it_ends_when_the_input_does_after_the_last_line_without_newline(pipe):
    spout, sending = pipe()
    os.write(sending, b"one\ntwo")
    os.close(sending)
    assert spout.read(10) == [(None, "one")]
    assert spout.read(10) == [(None, "two")]
    for _ in range(2):
        with pytest.raises(EndOfStream):
            spout.read(10)


def test_the_pipe_stays_blocking_for_others_that_share_it(pipe):
    spout, sending = pipe()
    os.write(sending, b"one\n")
    spout.read(1)
    assert os.get_blocking(spout._fd)


def test_it_keeps_its_own_descriptor(pipe):
    spout, sending = pipe()
    os.close(spout._given)
    os.write(sending, b"one\n")
    assert spout.read(1) == [(None, "one")]


def test_a_redirected_file_is_read_with_progress(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1\n2\n")
    with open(tmp_path / "a.txt") as file:
        spout = Lines(file.fileno())
        assert spout.progress() is None
        spout.open(Context("lines"))
    assert spout.progress() == (0, 4)
    assert spout.read(10) == [(None, "1"), (None, "2")]
    assert spout.progress() == (4, 4)
    with pytest.raises(EndOfStream):
        spout.read(10)
    spout.close()
    spout.close()


def test_dev_null_ends_at_once():
    with open(os.devnull, "rb") as null:
        spout = Lines(null.fileno())
        spout.open(Context("lines"))
    with pytest.raises(EndOfStream):
        spout.read(10)
    spout.close()


def test_a_bad_line_is_named_by_its_number_after_the_good_ones_came(pipe):
    spout, sending = pipe()
    for piece in (b"1\n2\n", b"3\n4", b"4\n5\xff", b"5\n6\n"):
        os.write(sending, piece)
        if piece != b"5\n6\n":
            spout.read(100)
    name = f"file descriptor {spout._given}"
    for _ in range(2):
        with pytest.raises(SourceError, match=name + ", line 5: byte 10 cannot be decoded as utf-8"):
            spout.read(100)


def test_lines_that_are_no_text_can_be_left_out_and_are_counted(pipe):
    spout, sending = pipe(errors="skip")
    os.write(sending, b"1\n\xff\n3\n")
    assert spout.read(10) == [(None, "1"), (None, "3")]
    assert spout.counters()["undecodable_lines_skipped"] == 1


def test_it_has_no_position_and_is_not_parallel():
    assert not has_position(Lines())
    assert not Lines().parallel


def test_a_closed_input_and_a_folder_are_named_with_the_remedy(pipe, tmp_path):
    fd = os.dup(0)
    os.close(fd)
    with pytest.raises(
        SourceError, match=f"file descriptor {fd} is closed; start the command with an input: COMMAND < FILE"
    ):
        Lines(fd).check()
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(SourceError, match="is a folder; redirect a file, or read the folder with TextFiles"):
        Lines(folder).check()
    os.close(folder)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"fd": -1}, "Lines: fd=-1"), ({"errors": "x"}, "Lines: errors='x'")]
)
def test_a_wrong_argument_is_refused(arguments, message):
    with pytest.raises(TopologyError, match=message):
        Lines(**arguments)


def rest_of(spout, limit=2):
    """All that comes to the end."""
    rows = []
    while True:
        try:
            rows += [line for _, line in spout.read(limit)]
        except EndOfStream:
            return rows


@pytest.mark.parametrize("read", [0, 1, 5])
def test_an_orderly_stop_takes_what_the_pipe_holds_and_another_goes_on_in_the_middle_of_a_line(pipe, read):
    spout, sending = pipe()
    os.write(sending, b"".join(b"%d\n" % i for i in range(5)) + b"hal")
    rows = [line for _, line in spout.read(read)] if read else []
    os.write(sending, b"".join(b"f %d\n" % i for i in range(3)) + b"fu")
    rest = spout.halt()
    rows += rest_of(spout)
    spout.close()
    os.write(sending, b"ll\n9\n")
    spout, _ = pipe()
    spout.begin_with(rest)
    os.close(sending)
    assert rows + rest_of(spout) == [*"01234", "half 0", "f 1", "f 2", "full", "9"]


def test_a_line_that_no_newline_has_ended_in_three_runs_is_whole_in_the_end(pipe):
    rest = None
    for part in (b"on", b"e li", b"ne"):
        spout, sending = pipe()
        if rest is not None:
            spout.begin_with(rest)
        os.write(sending, part)
        assert spout.read(10) == []
        rest = spout.halt()
        assert rest_of(spout) == []
        spout.close()
    assert rest == (b"one line", 8)


def test_a_stop_leaves_a_file_that_is_redirected_as_it_is(tmp_path):
    (tmp_path / "in").write_text("".join(f"{i}\n" for i in range(50_000)))
    with (tmp_path / "in").open() as file:
        spout = Lines(file.fileno())
        spout.open(Context("lines"))
        rows = [line for _, line in spout.read(10)]
        rest = spout.halt()
        rows += rest_of(spout, 1000)
        spout.close()
        spout = Lines(file.fileno())
        spout.open(Context("lines"))
        spout.begin_with(rest)
        assert rows + rest_of(spout, 1000) == [str(i) for i in range(50_000)]
        spout.close()
