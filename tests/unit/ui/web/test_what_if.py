"""What other policies would have done on the load of a run so far."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from esault.elasticity.policy import POLICIES
from esault.errors import UsageError
from esault.ui.web import what_if
from esault.ui.web.what_if import WhatIf, _model, answers


def recorded(rates, service=0.01, kept=1.0, lags=None, most=None):
    """A spout, a filter that leaves `kept` of its tuples, and a bolt that takes `service` seconds for each, second by second."""
    windows = []
    for i, rate in enumerate(rates):
        got = rate * kept
        spout = {"arrivals": rate, "processed": rate, "emitted": rate, "busy": 0.0, "sub_units": 1}
        spout["lag"] = None if lags is None else lags[i]
        bolt = {"arrivals": got, "processed": got, "emitted": 0.0, "busy": got * service, "sub_units": 2, "lag": None}
        windows.append({"t": i + 1.0, "units": {"in": spout, "count": bolt}})
    units = [{"name": "in", "kind": "spout", "senders": []}, {"name": "count", "kind": "bolt", "senders": ["in"]}]
    units = [{**unit, "least": 1, "most": most} for unit in units]
    return {"units": units, "slots": 16, "windows": windows}


def test_each_policy_is_tried_on_the_load_that_there_was():
    found = {each["policy"]: each for each in answers(recorded([50.0] * 20 + [400.0] * 40))}
    assert set(found) == {"none", *POLICIES.names()}
    assert found["none"]["widths"] == {"count": [[0.0, 2]]}
    assert found["none"]["sub_unit_seconds"] == pytest.approx(120, rel=0.01)
    assert found["none"]["waiting"] > 1000  # 400 tuples/s are more than two sub-units take
    assert found["auto"]["widths"]["count"][-1][1] >= 4
    assert found["auto"]["waiting"] < found["none"]["waiting"] / 2
    json.dumps(list(found.values()), allow_nan=False)


def test_no_policy_has_more_sub_units_than_the_unit_may_have():
    """The run itself could not have had them, and it stands beside."""
    found = {each["policy"]: each for each in answers(recorded([400.0] * 12, most=3)) if "error" not in each}
    widths = {policy: max(n for _, n in each["widths"]["count"]) for policy, each in found.items()}
    assert widths["auto"] == 3
    assert max(widths.values()) <= 3, widths
    assert (
        _model(recorded([400.0] * 12, most=1))[0].parts[-1].most == 2
    )  # it had two: by hand, or before a change of code


def test_what_function_steps_leave_out_does_not_come():
    model, seconds, began = _model(recorded([100.0] * 10, kept=0.25))
    spout, between, count = model.parts
    assert (seconds, began) == (10, 0)
    assert (between.selectivity, between.most) == (0.25, 1)
    assert count.senders == (between.name,)
    assert count.service == pytest.approx(0.01)
    assert spout.rate.rate(3.5) == 100


def test_what_was_due_and_not_read_counts_as_load():
    model, _, _ = _model(recorded([100.0] * 4, lags=[0, 50, 50, 20]))
    assert model.parts[0].rate.rates == (100.0, 150.0, 100.0, 70.0)


def test_of_a_long_run_the_newest_part_is_tried():
    model, seconds, began = _model(recorded([10.0] * 1000))
    assert (seconds, began) == (900, 100)
    assert model.parts[0].rate.times[0] == 0


def test_a_process_of_its_own_answers_and_one_at_a_time(monkeypatch):
    monkeypatch.setattr(what_if, "LONGEST", 3600.0)  # whatever else this machine does
    asked = WhatIf()
    with pytest.raises(UsageError, match="just begun"):
        asked.ask(recorded([1.0]))
    asked._busy.acquire()
    with pytest.raises(UsageError, match="already"):
        asked.ask(recorded([1.0] * 3))
    asked._busy.release()
    tried = {each["policy"] for each in asked.ask(recorded([20.0] * 3))}
    assert {"none", "auto", "ds2"} <= tried <= {"none", *POLICIES.names()}, "none that this program alone has"


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (SimpleNamespace(returncode=1, stderr="Traceback\nValueError: no\n", stdout=""), "the simulator failed: .*no"),
        (SimpleNamespace(returncode=-9, stderr="", stdout=""), "the simulator failed: -9"),
        (subprocess.TimeoutExpired("what_if", 1), "it took more than 120 s, and was given up"),
    ],
)
def test_a_process_that_fails_is_said_and_another_one_may_be_asked(done, said, monkeypatch):
    def run(*words, **options):
        if isinstance(done, Exception):
            raise done
        return done

    monkeypatch.setattr(subprocess, "run", run)
    asked = WhatIf()
    for _ in range(2):
        with pytest.raises(UsageError, match=said):
            asked.ask(recorded([1.0] * 3))


def test_what_the_process_reads_and_writes_are_lines_of_json(monkeypatch, capsys):
    monkeypatch.setattr(what_if, "answers", lambda record: iter([{"policy": "none"}, {"policy": record["x"]}]))
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"x": "auto"}'))
    monkeypatch.setattr(os, "nice", lambda by: None)
    what_if.main()
    lines = capsys.readouterr().out
    assert lines.splitlines() == ['{"policy": "none"}', '{"policy": "auto"}']
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0, stdout=lines, stderr=""))
    assert WhatIf().ask(recorded([1.0] * 3)) == [{"policy": "none"}, {"policy": "auto"}]
