"""Widths from the last run: which are taken, what counts more, and that slots are enough."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt, Topology, UsageError, by_key, shuffle
from esault.messages.settings import Settings
from esault.report import Latency, Report, RootCounts
from esault.runtime.session.learned import check_folder, keep, usual_width, with_learned
from esault.runtime.session.request import Request
from esault.sources import Items


class Work(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Said:
    def __init__(self):
        self.notices = []

    def notice(self, text):
        self.notices.append(text)


def plan():
    t = Topology("words")
    work = t.spout("lines", Items([])).bolt("split", Work, shuffle(), max_parallelism=6)
    work.bolt("count", Work, by_key())
    return t.plan()


@pytest.fixture
def learned(tmp_path):
    """Says what the last run of 100 s had, and returns how wide bolts begin, and what is said."""

    def begin(split=((0.0, 4),), count=((0.0, 3),), **more):
        units = {"split": {"parallelism": split}, "count": {"parallelism": count}, "gone": {"parallelism": [[0, 9]]}}
        (tmp_path / "words.json").write_text(json.dumps({"seconds": 100.0, "units": units}))
        view = Said()
        request = with_learned(Request(None, learn=tmp_path, view=view, **more), plan())
        return dict(request.parallelism), view.notices

    return begin


def test_bolts_begin_as_wide_as_they_were(learned, tmp_path):
    widths, said = learned()
    assert widths == {"split": 4, "count": 3}
    assert said[0] == (
        f"--learn: split begins with 4 sub-units, as it had for most of the last run ({tmp_path / 'words.json'})"
    )


@pytest.mark.parametrize(
    ("more", "widths"),
    [
        ({"parallelism": {"split": 2}}, {"split": 2, "count": 3}),
        ({"policies": {"count": "none"}}, {"split": 4}),
        ({"policies": {"": "none"}}, {}),
        ({"policies": {"": "none", "count": "auto"}}, {"count": 3}),
        ({"resume": True}, {}),
        ({"from_savepoint": "s"}, {}),
        ({"split": ((0.0, 9),)}, {"split": 6, "count": 3}),  # its own bound
        ({"split": ((90.0, 9),)}, {"count": 3}),  # it had no processes of its own before
        ({"slots": 5}, {"split": 2, "count": 2}),  # and a spout
        ({"slots": 3}, {}),
        ({"settings": Settings(budget=5)}, {"split": 2, "count": 2}),
        ({"settings": Settings(budget=5), "slots": 4}, {"count": 2}),
        ({"settings": Settings(hourly_budget=5.0)}, {}),
        ({"hosts": "hosts.toml"}, {}),
        ({"hosts": "hosts.toml", "slots": 20}, {"split": 4, "count": 3}),
    ],
)
def test_what_else_is_said_counts_more(learned, more, widths):
    assert learned(**more)[0] == widths


def test_a_first_run_and_a_folder_that_is_not_there_change_nothing(tmp_path):
    request = Request(None, learn=tmp_path / "none")
    assert with_learned(request, plan()) is request
    request = Request(None)
    assert with_learned(request, plan()) is request


def test_something_else_at_its_place_is_refused(tmp_path):
    (tmp_path / "words.json").write_text("[]")
    with pytest.raises(UsageError, match=r"words\.json is no report of a run; remove it"):
        with_learned(Request(None, learn=tmp_path), plan())


def report(**more):
    fields = {"topology": "words", "engine": "actors", "started": "", "seconds": 60.0, "ended": "drained"}
    return Report(**{**fields, "units": {}, "end_to_end_ms": Latency(), "roots": RootCounts(), **more})


def test_a_report_is_kept_that_says_something(tmp_path):
    said = []
    check_folder(tmp_path / "new" / "folder")
    keep(tmp_path / "new" / "folder", report(), said.append)
    assert json.loads((tmp_path / "new" / "folder" / "words.json").read_text())["seconds"] == 60.0
    keep(tmp_path, report(seconds=1.0), said.append)
    keep(tmp_path, report(failure="it failed"), said.append)
    assert not (tmp_path / "words.json").exists() and not said


def test_a_run_that_is_over_does_not_fail_for_it(tmp_path):
    said = []
    (tmp_path / "words.json").mkdir()
    keep(tmp_path, report(), said.append)
    (text,) = said
    assert "words.json cannot be written" in text and "the next run begins as this one did" in text


def test_a_folder_that_cannot_be_written_is_found_before_the_run(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="nothing can be kept there .*; name another folder"):
        check_folder(tmp_path / "file")


@given(st.lists(st.tuples(st.floats(0, 99), st.integers(0, 9)), max_size=6))
def test_the_usual_width_is_had_or_less_for_half_of_the_time(changes):
    changes = sorted(changes, key=lambda change: change[0])
    found = usual_width(changes, 100.0)
    ends = [t for t, _ in changes[1:]] + [100.0]
    lengths = [(0, changes[0][0] if changes else 100.0)]
    lengths += [(n, end - t) for (t, n), end in zip(changes, ends)]
    assert sum(length for n, length in lengths if n <= found) >= 50 - 1e-6
    assert sum(length for n, length in lengths if n < found) <= 50 + 1e-6


@pytest.mark.parametrize(
    "split", [5, {}, {"parallelism": 3}, {"parallelism": [["a", "b"]]}, {"parallelism": [[0, None]]}]
)
def test_a_report_that_is_none_is_refused_and_named(tmp_path, split):
    (tmp_path / "words.json").write_text(json.dumps({"seconds": 9.0, "units": {"split": split}}))
    with pytest.raises(UsageError, match=r"words\.json is no report of a run"):
        with_learned(Request(None, learn=tmp_path), plan())
