"""Output of user code: every line arrives whole and marked, however it is written."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.runtime.process.console import ConsoleReader, MarkedStream


def through(*writes, mark="count/1"):
    """The lines that a reader shows of these writes."""
    shown: list[tuple[str, str]] = []
    reader = ConsoleReader(lambda *line: shown.append(line))
    stream = MarkedStream(reader.write_fd, mark)
    reader.start()
    for text in writes:
        assert stream.write(text) == len(text)
    stream.finish()
    stream.finish()
    reader.close()
    return shown


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=6), max_size=6)


@given(texts, st.integers(1, 7))
def test_lines_arrive_however_they_are_cut_into_writes(lines, size):
    text = "".join(line + "\n" for line in lines)
    assert through(*[text[i : i + size] for i in range(0, len(text), size)]) == [("count/1", line) for line in lines]


def test_a_last_line_without_an_end_comes_when_the_process_ends():
    assert through("a\nb") == [("count/1", "a"), ("count/1", "b")]
    assert through("", "\n", "") == [("count/1", "")]


@pytest.mark.parametrize("letter", ["x", "ü", "語", "😀"])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_a_line_longer_than_a_pipe_takes_comes_in_pieces_of_whole_letters(letter, offset):
    line = "." * offset + letter * 5000
    shown = through(line + "\nnext\n")
    assert {mark for mark, _ in shown} == {"count/1"}
    assert "".join(text for _, text in shown[:-1]) == line and shown[-1][1] == "next"


def test_a_lone_surrogate_is_shown_as_a_question_mark():
    assert through("a\ud800b\n") == [("count/1", "a?b")]


def test_lines_of_several_writers_are_not_mixed():
    shown: list[tuple[str, str]] = []
    reader = ConsoleReader(lambda *line: shown.append(line))
    reader.start()
    streams = [MarkedStream(reader.write_fd, name) for name in "abc"]
    threads = [
        threading.Thread(target=lambda s=s, n=n: [s.write(n * 3000 + "\n") for _ in range(20)])
        for s, n in zip(streams, "abc")
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    reader.close()
    assert len(shown) == 60 and all(text == mark * 3000 for mark, text in shown)


def test_another_name_holds_for_what_comes():
    shown: list[tuple[str, str]] = []
    reader = ConsoleReader(lambda *line: shown.append(line))
    reader.start()
    stream = MarkedStream(reader.write_fd, "a")
    stream.write("one\n")
    stream.rename("b")
    stream.write("two\n")
    reader.close()
    assert shown == [("a", "one"), ("b", "two")]


def test_where_the_command_is_gone_user_code_goes_on():
    read, write = os.pipe()
    os.close(read)
    stream = MarkedStream(write, "a")
    print("x" * 10_000, file=stream)
    stream.flush()
    os.close(write)
    assert stream.writable() and not stream.isatty() and stream.encoding == "utf-8"


def test_bytes_are_text_in_utf_8_however_they_are_cut():
    shown: list[tuple[str, str]] = []
    reader = ConsoleReader(lambda *line: shown.append(line))
    stream = MarkedStream(reader.write_fd, "count/1")
    reader.start()
    for part in (b"a\xc3", memoryview(b"\xa4\xff"), b"b\n"):
        assert stream.buffer.write(part) == len(part)
    stream.buffer.flush()
    reader.close()
    assert shown == [("count/1", "aä\ufffdb")]


def test_a_line_without_an_end_does_not_grow_for_ever():
    shown: list[tuple[str, str]] = []
    reader = ConsoleReader(lambda *line: shown.append(line))
    stream = MarkedStream(reader.write_fd, "count/1")
    reader.start()
    for _ in range(20_000):
        stream.write(".")
    reader.close()
    assert sum(len(text) for _, text in shown) > 10_000


def test_a_subprocess_may_write_where_the_stream_stands_for_a_descriptor():
    read, write = os.pipe()
    with os.fdopen(read) as reader, os.fdopen(write, "w") as end:
        stream = MarkedStream(-1, "count/1", end.fileno())
        stream.reconfigure(line_buffering=True, encoding="utf-8")
        subprocess.run(["echo", "told"], stdout=stream.fileno(), check=True)
        end.close()
        assert reader.read() == "told\n"
    with pytest.raises(OSError, match="fileno"):
        MarkedStream(-1, "count/1").fileno()
