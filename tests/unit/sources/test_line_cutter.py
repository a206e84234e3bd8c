from __future__ import annotations

import itertools
import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.sources import line_cutter
from esault.sources.line_cutter import LineCutter
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally


def cut(pieces, **form):
    """All lines with the offset behind each, the reason why it stopped, and the counts."""
    tally = LineTally()
    tally.logger = logging.getLogger("test.line_cutter")
    cutter = LineCutter(LineFormat(**form), tally, "text")
    found, bad = [], None
    for block in [*(cutter.feed(piece) for piece in pieces if bad is None), cutter.finish()]:
        if bad is None:
            found += [(line, block.end(i + 1)) for i, line in enumerate(block.lines)]
            bad = block.bad
    return found, bad, {reason: count for reason, count in tally.counts.items() if count}


def lines(data, **form):
    found, bad, _ = cut([data], **form)
    assert bad is None
    return [line for line, _ in found]


def test_only_a_line_feed_ends_a_line():
    text = "a\u2028b\u0085c\x0bd\x0ce\x1cf\rg\n"
    assert lines(text.encode()) == [text[:-1]]


def test_a_carriage_return_before_the_line_feed_belongs_to_the_end():
    assert lines(b"a\r\nb\r\r\nc\rd\r\n\r\n") == ["a", "b\r", "c\rd", ""]


@pytest.mark.parametrize("beside", [b"", b"\0\n"])
def test_a_line_is_the_same_whatever_stands_beside_it(beside):
    cutter = LineCutter(LineFormat(errors="ignore"), LineTally(), "a.txt")
    assert cutter.feed(b"a\r\xff\n" + beside).lines == ["a", *[""] * bool(beside)]


def test_the_last_line_needs_no_newline_and_offsets_count_bytes():
    found, _, _ = cut(["ä\r\n\nöx".encode()])
    assert found == [("ä", 4), ("", 5), ("öx", 8)]


def test_a_byte_order_mark_is_taken_off_the_first_line_alone():
    text = "\ufeffa\n\ufeffb\n".encode()
    assert lines(text, encoding="utf-8-sig") == ["a", "\ufeffb"]
    assert lines(text) == ["\ufeffa", "\ufeffb"]
    assert lines("\ufeffab".encode(), encoding="utf-8-sig") == ["ab"]


def test_bytes_that_are_no_text_stop_with_place_and_remedy():
    found, bad, _ = cut([b"one\ntw\xffo\nthree\n"])
    assert found == [("one", 4)]
    assert (bad.start, bad.end) == (4, 9)
    assert bad.reason == (
        "byte 6 cannot be decoded as utf-8 (invalid start byte); if it is text, name its encoding=, "
        'or read it with errors="replace" (or "skip")'
    )


def test_a_nul_byte_stops_with_place_and_remedy():
    _, bad, _ = cut([b"one\ntwo\0\n"])
    assert bad.reason.startswith("a NUL byte at byte 7, which text does not hold: binary, or UTF-16? if it is text")


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ("replace", ["a", "\ufffdb\ufffd", "c\ufffd"]),
        ("ignore", ["a", "b", "c"]),
        ("skip", ["a"]),
    ],
)
def test_what_is_no_text_can_be_replaced_ignored_or_skipped(errors, expected):
    found, bad, counts = cut([b"a\n\0b\xff\nc\xe2\x82"], errors=errors)
    assert bad is None
    assert [line for line, _ in found] == expected
    assert counts == ({"undecodable_lines_skipped": 2} if errors == "skip" else {})


def test_a_line_that_is_too_long_stops_before_all_of_it_is_in_memory():
    cutter = LineCutter(LineFormat(max_line=10), LineTally(), "text")
    assert cutter.feed(b"ok\n12345").lines == ["ok"]
    block = cutter.feed(b"678901")
    assert block.bad is not None
    assert block.bad.start == 3
    assert "a line of more than 10 bytes (max_line); if that is right, raise max_line, else" in block.bad.reason
    assert 'on_long_line="skip" or shorten them with on_long_line="truncate"' in block.bad.reason


def test_long_lines_can_be_left_out_or_cut_between_two_characters():
    data = "kurz\naaaaäöü und mehr\nx\nlänger als das\n".encode()
    found, _, counts = cut([data], max_line=7, on_long_line="skip")
    assert [line for line, _ in found] == ["kurz", "x"]
    assert counts == {"long_lines_skipped": 2}
    found, _, counts = cut([data], max_line=7, on_long_line="truncate")
    assert found == [("kurz", 5), ("aaaaä", 25), ("x", 27), ("länger", 43)]
    assert counts == {"long_lines_truncated": 2}


def test_of_a_long_line_no_more_than_max_line_is_kept():
    cutter = LineCutter(LineFormat(max_line=100, on_long_line="truncate"), LineTally(), "text")
    for _ in range(1000):
        assert cutter.feed(b"x" * 1000).lines == []
    assert len(cutter._held) == 100
    assert cutter.pending == 1_000_000
    block = cutter.feed(b"y\nz\n")
    assert block.lines == ["x" * 100, "z"]
    assert [block.end(i) for i in range(3)] == [0, 1_000_002, 1_000_004]


def test_the_first_line_left_out_is_logged_and_further_ones_are_only_counted(caplog):
    tally = LineTally()
    cutter = LineCutter(LineFormat(errors="skip"), tally, "text.txt")
    with caplog.at_level(logging.WARNING):
        cutter.feed(b"a\n\xff\n\xff\n\xff\n")
    assert tally.counts["undecodable_lines_skipped"] == 3
    assert caplog.messages == [
        "text.txt, byte 2: a line that is no text in this encoding was left out; further ones are only counted"
    ]


CONTENT = st.lists(
    st.sampled_from(
        [
            b"a",
            b"bc",
            "ä".encode(),
            "€".encode(),
            b"\n",
            b"\n",
            b"\r",
            b"\r\n",
            b"\r\n",
            b"\0",
            b"\xff",
            b"\xe2\x82",
            b"x" * 9,
        ]
    )
).map(b"".join)


@given(
    data=CONTENT,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    errors=st.sampled_from(["strict", "replace", "ignore", "skip"]),
    on_long_line=st.sampled_from(["fail", "skip", "truncate"]),
    max_line=st.sampled_from([1, 3, 8, 1000]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "shift_jis", "ascii"]),
)
def test_lines_do_not_depend_on_how_the_bytes_came(data, cuts, errors, on_long_line, max_line, encoding):
    form = {"errors": errors, "on_long_line": on_long_line, "max_line": max_line, "encoding": encoding}
    places = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    whole, whole_bad, whole_counts = cut([data], **form)
    found, bad, counts = cut(pieces, **form)
    assert found == whole
    assert (bad is None) == (whole_bad is None)
    if bad is None:
        assert counts == whole_counts
        # and each line is what Python makes of it alone
        if errors in ("replace", "ignore") and max_line == 1000 and b"\0" not in data and encoding != "utf-8-sig":
            parts = data.split(b"\n")
            alone = [p.removesuffix(b"\r") for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
            assert [line for line, _ in found] == [p.decode(encoding, errors) for p in alone]
    else:
        assert bad.start == whole_bad.start


@given(
    data=CONTENT,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    errors=st.sampled_from(["strict", "replace", "ignore", "skip"]),
    on_long_line=st.sampled_from(["fail", "skip", "truncate"]),
    max_line=st.sampled_from([3, 1000]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "shift_jis", "ascii"]),
)
@example(b"abc\nd\n", [2], "strict", "fail", 1000, "utf-8")
@example("ab\nä\nc\n".encode(), [1, 4], "strict", "fail", 1000, "utf-8")
@example(b"a\r\n\0\n", [1, 2], "replace", "fail", 1000, "utf-8")
def test_lines_that_are_cut_as_long_ones_are_the_same(data, cuts, errors, on_long_line, max_line, encoding):
    form = {"errors": errors, "on_long_line": on_long_line, "max_line": max_line, "encoding": encoding}
    places = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_cutter, "LONG", 1 << 30)  # none is
        short = cut(pieces, **form)
        patch.setattr(line_cutter, "LONG", 0)  # all are
        assert cut(pieces, **form) == short


def test_long_lines_are_decoded_from_where_they_stand():
    long, short = "x" * 2000 + "\n", "y\n" * 50
    cutter = LineCutter(LineFormat(), LineTally(), "text")
    whole = []
    cutter._cut = lambda body, start, cut=cutter._cut: whole.append(len(body)) or cut(body, start)
    for piece in (long * 3, long * 2 + short, long, short, short):
        cutter.feed(piece.encode())
    # Whether lines are long is told by those before them, or by the first: of the short ones the first piece is cut line by line.
    assert whole == [len(short)]


@given(
    data=CONTENT,
    errors=st.sampled_from(["strict", "replace", "skip"]),
    on_long_line=st.sampled_from(["skip", "truncate"]),
    max_line=st.sampled_from([3, 1000]),
    asked=st.lists(st.integers(0, 60), max_size=8),
)
@example(data="a\nä\nbc\n".encode(), errors="strict", on_long_line="skip", max_line=1000, asked=[3, 1, 2])
@example(data=b"a\nb\nbc\n", errors="strict", on_long_line="skip", max_line=1000, asked=[2, 1, 3, 0])
@example(data=b"a\r\n\rb\r\nbc\r\n", errors="replace", on_long_line="skip", max_line=1000, asked=[2, 1, 3, 0])
@example(data=b"a\r\nb\nbc\r\n", errors="replace", on_long_line="skip", max_line=1000, asked=[2, 1, 3, 0])
def test_an_offset_is_the_same_however_they_are_asked_for(data, errors, on_long_line, max_line, asked):
    form = LineFormat(errors=errors, on_long_line=on_long_line, max_line=max_line)
    anew = lambda: LineCutter(form, LineTally(), "text", 7).feed(data)
    block = anew()
    for count in asked:
        count = min(count, len(block.lines))
        assert block.end(count) == anew().end(count)
    if form.errors == "replace" and max_line == 1000 and b"\0" not in data:
        assert [block.end(i) for i in range(len(block.lines) + 1)] == [
            7 + end for end in (0, *(i + 1 for i, byte in enumerate(data) if byte == 10))
        ]
