"""A run within a budget, live: `auto` uses it up and no more, and says so."""

from __future__ import annotations

import json
import signal

import pytest
import waiting
from test_live_changes import unit

from esault.errors import UsageError

pytestmark = pytest.mark.slow


def test_a_slow_bolt_grows_up_to_the_budget(command, tmp_path):
    report = tmp_path / "report.json"
    options = ("--budget", "4", "--report", str(report))
    command.start("calls", *options, out="out.jsonl", seconds=0.1, rate=40.0)
    command.running()
    told = "the budget of 4 is spent"
    command.until(lambda: any(told in line for line in command.status()["scaling"]))
    status = command.status()
    assert sum(each["sub_units"] for each in status["units"] if not each.get("chained_to")) == status["slots"] == 4
    assert status["free_slots"] == 0
    assert unit(command, "call")["sub_units"] > 1
    before = unit(command, "call")["tuples_in"]
    command.until(lambda: unit(command, "call")["tuples_in"] >= before + 120)  # a reason is written when it has stood
    code, _, err = command.stop()
    assert code == 0, err
    decisions = json.loads(report.read_text())["decisions"]
    assert any(d["what"].startswith("rescale") and d["outcome"] == "done" for d in decisions)
    assert any(told in d["reason"] and "would do for all units" in d["reason"] for d in decisions)


def test_money_buys_the_cheapest_slots_and_no_more_and_a_host_can_leave_all_the_same(command, nodes, tmp_path):
    nodes.start("cheap", slots=2, more=("--slot-price", "0.1"))
    nodes.start("dear", slots=4, more=("--slot-price", "0.4"))
    options = ("--budget", "0.65/h", "--report", "report.json")  # two cheap slots, and a dear one
    command.start("calls", *nodes.options, *options, out="out.jsonl", seconds=0.1, rate=40.0)
    command.running()
    command.until(lambda: any("the budget of 3 is spent" in line for line in command.status()["scaling"]))
    status = command.status()
    assert {name: len(host["sub_units"]) for name, host in status["hosts"].items()} == {"cheap": 2, "dear": 1}
    assert (status["slots"], status["free_slots"]) == (3, 0)
    with pytest.raises(UsageError, match=r"0 of 3 are free within the budget of 0.65/h"):
        command.scale("call", 4)
    nodes["dear"].kill(signal.SIGTERM)  # there is no other slot: the unit shrinks
    assert nodes["dear"].process.wait(waiting.PATIENCE) == 0
    assert unit(command, "call")["sub_units"] == 1
    code, out, err = command.stop()
    assert code == 0, err
    assert "budget 0.65/h: at most 0.6/h at a time, " in out and " spent of " in out
    spent = json.loads((tmp_path / "report.json").read_text())["budget"]
    assert (spent["limit"], spent["most"]) == (0.65, pytest.approx(0.6))
    assert 0 < spent["cost"] < spent["allowed"] and spent["mean"] < 0.65
    rows = [json.loads(line)["key"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows) == json.loads((tmp_path / "report.json").read_text())["units"]["orders"]["tuples_out"]


@pytest.mark.parametrize(
    ("price", "budget", "said"),
    [
        ((), "1/h", "host a has no price, and the budget is in money: start its node with --slot-price"),
        (("--slot-price", "0.3"), "0.5/h", "within a budget of 0.5/h, which buys 1 slot of these hosts: it takes 2"),
    ],
)
def test_a_budget_in_money_that_cannot_be_is_refused_before_anything_starts(command, nodes, price, budget, said):
    nodes.start("a", more=price)
    code, _, err = command.refused("calls", *nodes.options, "--budget", budget, out="out.jsonl", seconds=0.1, rate=40.0)
    assert code == 2 and said in err
    code, _, err = command.refused("calls", "--budget", budget, out="out.jsonl", seconds=0.1, rate=40.0)
    assert code == 2 and "slots of this machine have no price" in err
