"""What every source has to keep: the same tuples in any portions, and from any position on the rest."""

from __future__ import annotations

import copy
import gzip
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esault.sources
from esault.errors import EsaultError
from esault.payload.codec import Codec
from esault.sources import Cron, Directory, Items, JsonFiles, Lines, MicroBatches, Paced, TcpLines, TextFiles, Ticker
from esault.state.spool import Spooled
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout, has_position

ROOT = Path(__file__).parents[2]
#: each file: its lines; a newline ends each but perhaps the last
TEXTS = st.lists(
    st.tuples(st.lists(st.text("ab\r\u2028ä€ ", max_size=6), max_size=12), st.booleans()), min_size=1, max_size=5
)
LIMITS = st.lists(st.integers(1, 7), min_size=1, max_size=5)


class Clock:
    """Each look at it is ten seconds later, so that nothing has to be waited for."""

    def __init__(self):
        self.now = 1e9

    def __call__(self):
        self.now += 10
        return self.now


def write_texts(folder, texts, suffix="", opener=open):
    for index, (lines, ended) in enumerate(texts):
        text = "\n".join(lines) + ("\n" if ended and lines else "")
        with opener(os.path.join(folder, f"{index}.txt{suffix}"), "wb") as file:
            file.write(text.encode())


def text_files(folder, texts):
    write_texts(folder, texts)
    return lambda: TextFiles(os.path.join(folder, "*.txt"))


def compressed_text_files(folder, texts):
    write_texts(folder, texts, ".gz", gzip.open)
    return lambda: TextFiles(folder)


def lenient_text_files(folder, texts):
    """Every third line is no text, and some are too long."""
    for index, (lines, _) in enumerate(texts):
        raws = [line.encode() + (b"\xff" if i % 3 == 2 else b"") for i, line in enumerate(lines)]
        Path(folder, f"{index}.txt").write_bytes(b"\n".join(raws))
    return lambda: TextFiles(os.path.join(folder, "*.txt"), errors="skip", max_line=8, on_long_line="skip")


def json_files(folder, texts):
    for index, (lines, _) in enumerate(texts):
        rows = [json.dumps({"id": [index, line]}) if i % 4 else "" for i, line in enumerate(lines)]
        Path(folder, f"{index}.jsonl").write_text("\n".join(rows))
    return lambda: JsonFiles(os.path.join(folder, "*.jsonl"), key="id")


def lenient_json_files(folder, texts):
    for index, (lines, _) in enumerate(texts):
        rows = [json.dumps({"id": line}) if i % 3 else "{oops" for i, line in enumerate(lines)]
        Path(folder, f"{index}.jsonl").write_text("\n".join(rows))
    return lambda: JsonFiles(os.path.join(folder, "*.jsonl"), key="id", on_bad_line="skip")


def followed_files(folder, texts):
    write_texts(folder, texts)
    return lambda: TextFiles(os.path.join(folder, "*.txt"), follow=True)


def items(folder, texts):
    rows = [(index, line) for index, (lines, _) in enumerate(texts) for line in lines]
    return lambda: Items(rows)


def repeated_items_of_a_function(folder, texts):
    rows = [(index, line) for index, (lines, _) in enumerate(texts) for line in lines]
    return lambda: Items(lambda: iter(rows), repeat=3)


def paced_items(folder, texts):
    make = items(folder, texts)
    return lambda: Paced(make(), rate=2)


def items_in_windows(folder, texts):
    make = items(folder, texts)
    return lambda: MicroBatches(make(), window=2.0, slice=0.5)


def ticks(folder, texts):
    return lambda: Ticker(7, count=1 + len(texts))


def times_of_a_crontab(folder, texts):
    return lambda: Cron("*/20 * * * * *", count=1 + len(texts))


SOURCES = [
    text_files,
    compressed_text_files,
    lenient_text_files,
    json_files,
    lenient_json_files,
    followed_files,
    items,
    repeated_items_of_a_function,
    paced_items,
    items_in_windows,
]
#: of one part
ALONE = [ticks, times_of_a_crontab]


@contextmanager
def opened(make, position=None, part=0, parts=1):
    spout = make()
    spout.check()
    spout.open(Context("source", part=part, parts=parts, now=Clock()))
    if position is not None:
        spout.seek(Codec().unpack(Codec().pack(position)))
    try:
        yield spout
    finally:
        spout.close()


def read_on(spout, limits):
    """Each portion with the position behind it; ends where the stream does, or with many empty reads.

    A portion may be empty because all its lines were left out, so a few in a row say nothing.
    """
    idle, turn = 0, 0
    while idle < 60:
        limit = limits[turn % len(limits)]
        turn += 1
        try:
            rows = spout.read(limit)
        except EndOfStream:
            return
        idle = 0 if rows else idle + 1
        assert len(rows) <= limit
        yield list(rows), spout.position()


def all_rows(make, limits=(1000,), **where):
    with opened(make, **where) as spout:
        return [row for rows, _ in read_on(spout, limits) for row in rows]


def by_key(rows):
    """Files that are followed take turns: the order is that of each file's lines."""
    found = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def same(source, some, others):
    return by_key(some) == by_key(others) if source is followed_files else some == others


@pytest.mark.parametrize("source", [*SOURCES, *ALONE])
@given(texts=TEXTS, limits=LIMITS)
def test_the_same_tuples_come_in_any_portions(source, texts, limits):
    with tempfile.TemporaryDirectory() as folder:
        make = source(folder, texts)
        assert same(source, all_rows(make, limits), all_rows(make))


@pytest.mark.parametrize("source", [*SOURCES, *ALONE])
@given(texts=TEXTS, limits=LIMITS, others=LIMITS, data=st.data())
def test_from_any_position_the_rest_comes(source, texts, limits, others, data):
    with tempfile.TemporaryDirectory() as folder:
        make = source(folder, texts)
        with opened(make) as spout:
            portions = [([], spout.position()), *read_on(spout, limits)]
        chosen = data.draw(st.integers(0, len(portions) - 1))
        before = [row for rows, _ in portions[: chosen + 1] for row in rows]
        after = all_rows(make, others, position=portions[chosen][1])
        whole = [row for rows, _ in portions for row in rows]
        assert same(source, before + after, whole)
        if source is not followed_files:
            assert after == whole[len(before) :]


@pytest.mark.parametrize("source", SOURCES)
@given(texts=TEXTS, parts=st.integers(1, 4))
def test_parts_have_all_tuples_once_between_them(source, texts, parts):
    with tempfile.TemporaryDirectory() as folder:
        make = source(folder, texts)
        dealt = [row for part in range(parts) for row in all_rows(make, part=part, parts=parts)]
        assert sorted(map(repr, dealt)) == sorted(map(repr, all_rows(make)))


@given(texts=TEXTS, limits=LIMITS)
def test_standard_input_gives_the_same_tuples_as_the_file_it_is_redirected_from(texts, limits):
    with tempfile.TemporaryDirectory() as folder:
        make = text_files(folder, texts[:1])
        with open(os.path.join(folder, "0.txt")) as file:
            assert all_rows(lambda: Lines(file.fileno()), limits) == [(None, line) for _, line in all_rows(make)]


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_says_what_it_can_do(source, tmp_path):
    make = source(str(tmp_path), [(["a", "b"], True)])
    spout = make()
    assert isinstance(spout, Spout)
    assert has_position(spout)
    assert spout.parallel
    with opened(make) as spout:
        progress = spout.progress()
        assert progress is None or 0 <= progress[0] <= progress[1]
        assert spout.read(0) in ([], ())


@pytest.mark.parametrize("source", [*SOURCES, *ALONE])
def test_a_source_that_was_not_opened_can_be_copied(source, tmp_path):
    make = source(str(tmp_path), [(["a", "b"], True)])
    spout = make()
    copied = copy.deepcopy(spout)
    assert type(copied) is type(spout)
    assert all_rows(lambda: copied) == all_rows(make)


@pytest.mark.parametrize("source", [*SOURCES, *ALONE])
def test_the_end_stays_the_end(source, tmp_path):
    with opened(source(str(tmp_path), [(["a", "b"], True)])) as spout:
        list(read_on(spout, [1000]))
        position = spout.position()
        for _ in range(3):
            try:
                assert not spout.read(10)
            except EndOfStream:
                pass
        assert spout.position() == position


def standard_input(folder, texts):
    write_texts(folder, texts)
    first = os.path.join(folder, "0.txt")

    def make():
        with open(first) as file:
            return Lines(os.dup(file.fileno()))

    return make


def listening(folder, texts):
    return lambda: TcpLines("127.0.0.1", 0, listen=True)


def spooled_items(folder, texts):
    """What stands for a source that cannot seek, with checkpoints."""
    rows = [(index, line) for index, (lines, _) in enumerate(texts) for line in lines]
    folders = (os.path.join(folder, f"spool{i}") for i in range(1000))
    return lambda: Spooled(Items(rows), Path(next(folders)))


#: hooks between `open` and `close`, in any order, but `seek` before all others and `due` behind a read that gave something
BETWEEN = st.lists(st.sampled_from(["read", "due", "position", "commit", "progress", "lag"]), max_size=30)


@pytest.mark.parametrize("source", [*SOURCES, *ALONE, standard_input, listening, spooled_items])
@given(texts=TEXTS, hooks=BETWEEN, limit=st.integers(0, 9), part=st.integers(0, 1), goes_on=st.booleans())
def test_every_hook_may_be_called_wherever_it_is_legal(source, texts, hooks, limit, part, goes_on):
    with tempfile.TemporaryDirectory() as folder:
        make, position = source(folder, texts), None
        parts = 2 if make().parallel else 1
        for _ in range(1 + goes_on):  # the second one goes on from where the first one ended
            spout, clock = make(), Clock()
            spout.check()
            spout.context = Context("source", part=part % parts, parts=parts, now=clock)
            spout.open(spout.context)
            if position is not None:
                spout.seek(position)
            positions, given, over = [spout.position()], False, False
            for hook in hooks:
                if hook == "read":
                    if over:
                        continue
                    try:
                        given = len(spout.read(limit)) > 0
                    except EndOfStream:
                        given, over = False, True
                    positions.append(spout.position())
                elif hook == "due":
                    due = spout.due() if given else None
                    assert due is None or due <= clock.now + 1e6
                elif hook == "commit":
                    spout.commit(positions[len(positions) // 2])
                elif hook == "position":
                    assert spout.position() == positions[-1]
                elif hook == "progress":
                    progress = spout.progress()
                    assert progress is None or 0 <= progress[0] <= progress[1]
                else:
                    lag = spout.lag()
                    assert lag is None or (type(lag) is int and lag >= 0)
            if has_position(spout):
                position = positions[-1]
            spout.close()


@pytest.mark.parametrize("source", [*SOURCES, *ALONE, standard_input])
@settings(max_examples=12, deadline=None)
@given(texts=TEXTS)
def test_every_source_keeps_the_public_contract(source, texts):
    with tempfile.TemporaryDirectory() as folder:
        make = source(folder, texts)
        check_spout(make, order="key" if source is followed_files else "all", positions=6)


@pytest.mark.parametrize(
    "spout",
    [
        TextFiles("/nowhere/*.txt"),
        Directory("/nowhere/*.txt"),
        JsonFiles("/nowhere/x.jsonl"),
        Lines(987),
        TcpLines("no.such.host.invalid", 80),
        Items(["x"]),
        Paced(TextFiles("/nowhere/x"), 1),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_starts(spout):
    with pytest.raises(EsaultError, match=r"\w"):
        spout.check()


def test_every_source_in_the_box_stands_here():
    tested = {"Directory", "TextFiles", "JsonFiles", "Items", "Paced", "Lines", "TcpLines", "MicroBatches"}
    tested |= {"Cron", "Ticker", "DeadLetters"}
    tested |= {"CsvFiles", "ParquetFiles", "ArrowFiles", "Table"}  # tests/unit/sources/test_columnar_files.py
    assert set(esault.sources.__all__) == tested | set(esault.sources._ELSEWHERE)
    for place in esault.sources._ELSEWHERE.values():  # those of servers have tests with them
        folder = place.removeprefix("esault.").rpartition(".")[0].replace(".", "/")
        assert any((ROOT / tests / folder).is_dir() for tests in ("tests", "tests/unit")), folder
