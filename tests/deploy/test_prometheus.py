"""The alert rules and the board in deploy/: read by a real promtool, and about metrics that a run exports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from esault import Bolt, Topology, by_key
from esault.control.report.summary import snapshot
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.ui.prometheus import PrometheusView

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
BOARD = DEPLOY / "grafana" / "esault.json"

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], cwd=RULES.parent, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", "alerts.yml"), ("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")],
)
def test_prometheus_takes_them_and_they_raise_what_they_should(arguments):
    code, said = promtool(*arguments)
    assert code == 0, said


@needs_promtool
def test_prometheus_understands_each_expression_of_the_board(tmp_path):
    rules = [{"record": f"a:b:c{i}", "expr": expr} for i, expr in enumerate(expressions())]
    file = tmp_path / "board.yml"
    file.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))  # JSON is YAML
    code, said = promtool("check", "rules", str(file))
    assert code == 0, said


def test_each_alert_has_a_case_that_raises_it_and_one_in_which_it_is_silent():
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    tests = (RULES.parent / "alerts_test.yml").read_text()
    assert set(re.findall(r"name: (\w+) is raised", tests)) == alerts
    assert set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests)) == alerts


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@pytest.fixture(scope="module")
def exported():
    """Names of samples and labels that a run's own exporter has."""
    pytest.importorskip("prometheus_client")
    from prometheus_client import CollectorRegistry, generate_latest

    t = Topology("t")
    t.spout("rows", Items([(1, 1)])).bolt("same", Same, by_key())
    local = LocalRuntime(t)
    local.run_until_drained()
    view = PrometheusView("0", None)
    view._snapshot = snapshot(local.driver, local.now())
    registry = CollectorRegistry()
    registry.register(view)
    text = generate_latest(registry).decode()
    return set(re.findall(r"^# HELP (\w+)", text, re.M))


def expressions():
    board = json.loads(BOARD.read_text())
    variables = [each["query"]["query"] for each in board["templating"]["list"] if isinstance(each["query"], dict)]
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(found) > 20
    assert all("esault_" in each for each in variables)
    return found


def test_each_metric_of_board_and_rules_is_one_that_a_run_exports(exported):
    named = set(re.findall(r"\besault_\w+", BOARD.read_text() + RULES.read_text()))
    assert named <= exported


def test_panels_of_the_board_do_not_lie_upon_each_other():
    board = json.loads(BOARD.read_text())
    cells = [
        (x, y)
        for p in board["panels"]
        for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
        for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
