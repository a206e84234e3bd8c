"""What a run says at its end where lines were late since files are read one behind the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from esault import Bolt, Topology
from esault.control.report.late_lines import late_lines
from esault.runtime.session.local_run import run_local
from esault.runtime.session.request import Quiet, Request
from esault.sources import Directory, Items, TextFiles
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow


class Lines(Bolt):
    def process(self, key, value): ...


class Told(Quiet):
    def __init__(self):
        self.notices = []

    def notice(self, text):
        self.notices.append(text)


@pytest.fixture
def logs(tmp_path):
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_text("1\n2\n")
    return tmp_path


def hours(source, readers=1) -> Topology:
    t = Topology("hours")
    lines = t.spout("lines", source, time=float, parallelism=readers)
    lines.key_by(lambda line: "all").window("hourly", Lines, TumblingWindow(3600))
    return t


def said(source, late, readers=1):
    plan = hours(source, readers).plan()
    plan.units["lines"].spout.check()
    local = LocalRuntime(hours(source, readers))
    local.run_until_drained()
    report = local.report()
    units = {**report.units, "hourly": replace(report.units["hourly"], late=late)}
    return late_lines(plan, replace(report, units=units))


def test_lines_that_are_late_where_files_are_read_one_behind_the_other_are_told_with_the_remedy(logs):
    (text,) = said(TextFiles(logs), 1200)
    assert text.startswith("late tuples (1,200 of 'hourly'): 'lines' reads 3 files, each reader one behind the other")
    assert "Directory(path, every=None)" in text and text.endswith("parallelism=3")


def test_nothing_is_said_where_none_is_late_or_files_are_read_side_by_side(logs):
    assert said(TextFiles(logs), 0) == []
    assert said(TextFiles(logs), 5, readers=3) == []
    assert said(TextFiles(logs / "a.log"), 5) == []
    assert said(Directory(logs, every=None), 5) == []
    assert said(Items([("a", 1)]), 5) == []


def test_a_run_in_one_process_says_it_at_its_end(logs):
    """A reader opens a file behind the end of another in a read of its own, so that what the first brought has become a watermark."""
    (logs / "a.log").write_text("".join(f"{second}\n" for second in range(0, 200_000, 4)))
    view = Told()
    report = run_local(Request(lambda: hours(TextFiles(logs)), view=view))
    assert [
        text for text in view.notices if text.startswith(f"late tuples ({report.units['hourly'].late} of 'hourly')")
    ]
