"""`esault plan`: from a report and a load to words; what is refused names the remedy."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from esault.cli.main import cli
from esault.errors import EsaultError

TOPOLOGY = """
from esault import Bolt, Topology, shuffle
from esault.sources import Items


class Ask(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def topology():
    t = Topology("asked")
    asked = t.spout("in", Items([("k", 1)])).bolt("ask", Ask, shuffle())
    asked.bolt("again", Ask, shuffle())
    return t
"""
UNITS = {
    "in": {"arrivals": 0, "tuples_in": 0, "tuples_out": 1000, "busy_seconds": 4.5, "chained_to": ""},
    "ask": {"arrivals": 1000, "tuples_in": 1000, "tuples_out": 1000, "busy_seconds": 4.0, "chained_to": "in"},
    "again": {"arrivals": 1000, "tuples_in": 1000, "tuples_out": 0, "busy_seconds": 0.5, "chained_to": ""},
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "asked.py").write_text(TOPOLOGY)
    (tmp_path / "report.json").write_text(json.dumps({"topology": "asked", "engine": "actors", "units": UNITS}))
    (tmp_path / "load.csv").write_text("time,rate\n" + "".join(f"{10 * i},{100 if i < 3 else 400}\n" for i in range(6)))
    return tmp_path


def planned(folder, *options, report="report.json"):
    given = [str(folder / each) if each.endswith(".csv") else each for each in options]
    words = ["plan", str(folder / "asked.py"), "--report", str(folder / report), *given]
    return CliRunner().invoke(cli, words, catch_exceptions=False).output


def test_it_says_what_a_load_takes(files):
    text = planned(files, "--load", "load.csv", "--seconds", "20", "--seeds", "1", "--objective", "p99 < 100 ms")
    assert "60 s, 400 tuples/s at most, the 20 s from" in text
    assert "ask    4 ms a tuple; gets 1 for each of in, emits 1" in text
    assert "again  500 us a tuple" in text
    assert "always ask=" in text and "kept in" in text and "hosts of" in text
    assert (
        "Each was simulated 4 times: with 1 seed, with changes that take 4 times as long, and with tuples that take 25% more"
        in text
    )
    assert "is kept in all of them by" in text


def test_so_many_come_from_a_row_on_until_the_next(files):
    (files / "jump.csv").write_text("0,10\n20,700\n40,700\n")
    options = ("--load", "jump.csv", "--seeds", "1", "--margin", "0", "--objective", "p99 < 100 ms", "--json")
    auto, _ = json.loads(planned(files, *options))
    # A line from 10 to 700 would be followed at leisure; a jump lets what it brings wait until others serve.
    assert auto["kept"] == 0 and all(trial["p99"] > 0.2 for trial in auto["trials"])
    assert auto["trials"][1]["p99"] > auto["trials"][0]["p99"]  # the second one has slow changes


def test_changes_take_as_long_as_in_that_run(files):
    options = ("--rate", "10", "--seconds", "5", "--seeds", "1")
    assumed = "a new sub-unit serves after 300 ms; moved keys wait 20 ms (assumed: that run had no change)"
    assert assumed in planned(files, *options)
    change = {"kind": "rescale", "from": 1, "moved_bytes": 100, "dropped": ""}
    changes = [
        {**change, "to": 2, "prepare_ms": 100, "held_back_ms": 5, "total_ms": 130},
        {**change, "to": 5, "prepare_ms": 160, "held_back_ms": 5, "total_ms": 190},
        {**change, "to": 9, "prepare_ms": 9000, "held_back_ms": 0, "total_ms": 9000, "dropped": "ask/7 died"},
    ]
    report = {"topology": "asked", "engine": "actors", "units": UNITS, "changes": changes}
    (files / "changed.json").write_text(json.dumps(report))
    learnt = "a new sub-unit serves after 100 ms, 20 ms more for each further one; moved keys wait 5 ms"
    assert f"{learnt} (as in 2 changes of that run)" in planned(files, *options, report="changed.json")


def test_programs_get_the_trials(files):
    found = json.loads(planned(files, "--rate", "in=100", "--seconds", "5", "--seeds", "1", "--margin", "0", "--json"))
    assert [each["policy"] for each in found] == ["auto", "none"]
    assert found[1]["widths"] == {"ask": 1, "again": 1}
    assert found[1]["hosts"] >= 1 and found[1]["cost_an_hour"] is None and len(found[1]["trials"]) == 2


def test_what_no_width_can_keep_is_said(files):
    options = ("--rate", "10", "--seconds", "5", "--seeds", "1", "--objective", "p99 < 2 ms", "--slot-price", "2")
    text = planned(files, *options)
    assert "p99 < 2 ms is kept by none in all of them." in text
    assert "A tuple of ask alone takes 4 ms: more sub-units do not help." in text
    assert "cost an hour" in text


STEADY = ("--rate", "600", "--seconds", "20", "--seeds", "1")


def test_of_a_budget_it_says_the_best_use_how_sure_that_is_and_what_would_do(files):
    text = planned(files, *STEADY, "--objective", "p99 < 100 ms", "--budget", "4")
    told = text[text.index("The best use") :].splitlines()
    assert told[0] == "The best use of a budget of 4: always ask=2 again=1, beside 1 sub-unit of spouts."
    assert re.fullmatch(
        r"  latency: p99 .* s \(.* to .* s\); backlog: at most [\d,]+ \([\d,]+ to [\d,]+\) tuples", told[1]
    )
    assert told[2] == "  how sure: of 4 simulations it keeps up in 1, and keeps p99 < 100 ms in 1"
    assert told[3] == "A budget of 6 would do in all of them: always ask=4 again=1."
    assert "More --slots" not in text


def test_a_budget_that_is_enough_ends_with_how_sure_it_is(files):
    text = planned(files, *STEADY, "--budget", "7")
    assert text.splitlines()[-1] == "  how sure: of 4 simulations it keeps up in 4"


def test_money_buys_whole_slots_and_what_would_do_is_said_in_money(files):
    text = planned(files, *STEADY, "--budget", "0.35/h", "--slot-price", "0.1")
    assert "The best use of a budget of 0.35/h: " in text
    assert "A budget of 0.5/h would do in all of them" in text or "A budget of 0.6/h would do in all of them" in text


def test_no_candidate_goes_beyond_the_budget(files):
    found = json.loads(planned(files, *STEADY, "--budget", "5", "--policy", "auto", "--policy", "ds2", "--json"))
    assert len(found) == 3
    assert all(trial["most"] <= 4 for each in found for trial in each["trials"])
    assert all(0 <= each["keeping_up"] <= 4 for each in found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget", "2"), "--budget 2: asked takes 3 at the least, one for each unit"),
        (("--budget", "1/h"), "--budget 1/h: say what a slot costs an hour, by --slot-price"),
        (("--budget", "0.1/h", "--slot-price", "0.1"), "--budget 0.1/h buys 1 sub-unit: asked takes 3 at the least"),
        (("--budget", "lots"), "such as 8, or the most money an hour, such as 3.50/h"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_with_the_remedy(files, options, words):
    with pytest.raises(EsaultError, match=words):
        planned(files, *STEADY, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "nothing is said of what comes to in: write --load in=FILE.csv"),
        (("--rate", "much"), "'much' must be a number of tuples a second"),
        (("--rate", "0"), "above 0"),
        (("--rate", "10", "--objective", "fast"), "write 'p99 < 100 ms'"),
        (("--load", "load.csv", "--seconds", "0"), "must be above 0"),
        (("--load", "load.csv", "--seconds", "nan"), "--seconds nan must be above 0"),
        (("--rate", "10", "--seconds", "nan"), "--seconds nan must be above 0"),
        (("--rate", "10", "--seconds", "inf"), "--seconds inf must be above 0 and finite"),
        (("--load", "none.csv"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(files, options, words):
    with pytest.raises(EsaultError, match=words):
        planned(files, *options)


def test_what_a_process_of_the_pool_refuses_has_no_frames(files):
    with pytest.raises(EsaultError, match="there is no policy 'nope'") as refused:
        planned(files, *STEADY, "--policy", "nope")
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (None, r"esault run .*asked\.py --report"),
        ("[]", "is no report of a run"),
        ('{"units": {"in": {}}, "topology": "other"}', "is of 'other' .* has ask, again besides"),
        (json.dumps({"units": UNITS, "engine": "spark"}), "run it on the actors"),
    ],
)
def test_a_report_of_something_else_is_refused(files, report, words):
    if report is not None:
        (files / "other.json").write_text(report)
    with pytest.raises(EsaultError, match=words):
        planned(files, "--rate", "1", report="other.json")


def test_widths_that_a_unit_may_not_have_are_not_planned(files):
    made = TOPOLOGY.replace("Ask, shuffle())\n    asked.", "Ask, shuffle(), max_parallelism=2)\n    asked.")
    (files / "asked.py").write_text(made)
    text = planned(
        files, "--rate", "1000", "--seconds", "10", "--seeds", "1", "--objective", "p99 < 100 ms", "--margin", "0"
    )
    assert "p99 < 100 ms is kept by none in all of them." in text
    assert "ask may have 2 sub-units at most, and the load's peak is work for 4.0." in text
    assert "always" not in text


@pytest.mark.parametrize("seconds", ["0", "-5", "nan", "inf"])
def test_a_time_that_is_none_is_refused_with_a_rate_too(files, seconds):
    with pytest.raises(EsaultError, match=r"--seconds .* must be above 0 and finite"):
        planned(files, "--rate", "100", "--seconds", seconds)
