"""What a source leaves out is counted, and said once for each reason."""

from __future__ import annotations

import logging

import pytest

from esault.sources.line_tally import LineTally


def test_the_first_of_each_reason_is_logged_with_its_place(caplog):
    tally = LineTally()
    with caplog.at_level(logging.WARNING):
        for offset in (7, 8, 9):
            tally.note("bad_lines_skipped", "a 100%s.txt", offset, "no comma")
        tally.note("long_lines_skipped", "b.txt", 0)
    assert tally.counts["bad_lines_skipped"] == 3 and tally.counts["long_lines_skipped"] == 1
    assert [record.getMessage() for record in caplog.records] == [
        "a 100%s.txt, byte 7: a line that makes no row was left out (no comma); further ones are only counted",
        "b.txt, byte 0: a line longer than max_line was left out; further ones are only counted",
    ]


def test_all_reasons_are_there_from_the_start_and_no_others():
    tally = LineTally()
    assert set(tally.counts.values()) == {0}
    with pytest.raises(KeyError):
        tally.note("no_such_reason", "a", 0)
