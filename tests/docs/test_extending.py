"""The changes on the page about adding to the engine, each applied to a copy of the code, and what they bring."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "extending.md"
#: files that one addition may touch
MOST = 3

TOPOLOGY = """
from esault import *
from esault.sources import *
from esault.testing import LocalRuntime

class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)

def ran(build, **options):
    t = Topology("t")
    build(t)
    local = LocalRuntime(t, **options)
    local.run_until_drained()
    return local
"""
#: in the process of the check, which has imported the engine already
RUN_TESTS = """
import pytest, esault, pathlib
assert pathlib.Path(esault.__file__).parent.parent == pathlib.Path.cwd()
raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", "tests"]))
"""
CHECKS = {
    "A connector": """
from esault import connectors
assert connectors.find("WholeNumbers") is WholeNumbers
local = ran(lambda t: t.spout("in", WholeNumbers(5000)).bolt("same", Same, grouping=by_key()))
assert sorted(local.emitted("same")) == [(i, i) for i in range(5000)]
""",
    "A policy": """
from esault import policies
assert policies.parameters("constant") == {"period": 1.0, "width": 2}
rows = [(i % 20, i) for i in range(400)]
build = lambda t: t.spout("in", Paced(Items(rows), rate=200)).bolt("same", Same, grouping=by_key())
report = ran(build, policies={"": "constant:width=3,period=0.5"}).report()
assert [n for _, n in report.units["same"].parallelism][-1] == 3
assert report.changes[0].policy.startswith("constant")
""",
    "A grouping": """
class Where(Bolt):
    def process(self, key, value):
        self.emit(key, self.context.part)
def build(t):
    rows = Items([(i, i) for i in range(100)])
    t.spout("in", rows).bolt("where", Where, grouping=by_bounds((30, 60)), parallelism=3)
assert sorted(ran(build).emitted("where")) == [(i, 0 if i < 30 else 1 if i < 60 else 2) for i in range(100)]
t = Topology("t")
try:
    t.spout("in", Items([])).bolt("b", Same, grouping=by_bounds)
except TopologyError as error:
    assert "write by_bounds(bounds)" in str(error)
else:
    raise AssertionError
assert repr(by_bounds((3, 6))) == "by_bounds((3, 6))" and by_bounds((3, 6)) == by_bounds((3, 6)) != by_bounds((3,))
""",
    "A kind of windows": """
from esault.windows import ShiftWindow
at = lambda day, hour: 86400 * day + 3600 * hour
class Count(Bolt):
    def __init__(self):
        self.count = 0
    def process(self, key, value):
        self.count += 1
    def finish(self):
        self.emit(self.key, (self.window.start, self.count))
rows = [("k", at(0, 5)), ("k", at(0, 6)), ("k", at(0, 13.9)), ("k", at(0, 14)), ("k", at(0, 23)), ("k", at(1, 5.9))]
local = ran(lambda t: t.spout("in", Items(rows)).window("shifts", Count, ShiftWindow((6, 14, 22)), time=float))
assert [v for _, v in local.emitted("shifts")] == [(at(-1, 22), 1), (at(0, 6), 2), (at(0, 14), 1), (at(0, 22), 2)]
""",
    "A command to a run": """
import click
from esault.cli.main import cli
from esault.runtime.run_commands import Running, parse
assert "shares" in cli.list_commands(None)
assert cli.get_command(click.Context(cli), "shares").params[0].name == "unit"
t = Topology("t")
t.spout("in", Paced(Items([(i, i) for i in range(100)]), rate=100)).bolt("same", Same, grouping=by_key(), parallelism=4)
local = LocalRuntime(t)
local.run_for(0.3)
answer = parse({"do": "shares", "unit": "same"}).carry_out(Running(local.driver, {}), local.clock())
assert answer.then is None
assert len(answer.said["shares"]) == 4 and abs(sum(answer.said["shares"].values()) - 1) < 1e-9
try:
    parse({"do": "shares", "unit": "other"}).carry_out(Running(local.driver, {}), local.clock())
except UsageError:
    pass
else:
    raise AssertionError
""",
    "A counter": """
from esault.control.report.summary import Snapshot, UnitSnapshot, snapshot
from esault.control.report.timeline import Timeline
from esault.runtime.session.metrics_tables import WINDOWS
from esault.counters import declared
class Fails(Bolt):
    def __init__(self):
        self.tries = 0
    def process(self, key, value):
        self.tries += 1
        if self.tries % 3:
            raise ValueError("not yet")
        self.emit(key, value)
rows = [(i, i) for i in range(10)]
build = lambda t: t.spout("in", Items(rows)).bolt("fails", Fails, grouping=by_key(), on_error=skip(retries=2))
local = ran(build)
report = local.report()
assert report.units["fails"].retried == 20 and report.as_dict()["units"]["fails"]["retried"] == 20
assert "retried" in WINDOWS and declared(UnitSnapshot)["retried"].unit == "tries"
assert [u.retried for u in snapshot(local.driver, 0.0).units] == [0, 20]
""",
    "A duration": """
from esault.control.report.summary import snapshot
from esault.ui.metric_families import families
local = ran(lambda t: t.spout("in", Items([(i, i) for i in range(50)])).bolt("same", Same, grouping=by_key()))
assert "batch" in local.report().units["same"].durations_ms
found = {each.name: each.points for each in families(snapshot(local.driver, 0.0))}
[(labels, (bounds, counts, total))] = found["esault_batch_seconds"]
assert labels["unit"] == "same" and sum(counts) >= 1
""",
}
#: tests that look at the registry; they must hold with what the page adds
TESTS = {
    "A connector": ["cli/test_connectors.py"],
    "A policy": ["test_policies.py"],
    "A grouping": ["topology/test_inputs.py", "topology/test_groupings.py"],
    "A kind of windows": ["topology/test_window_of_ones_own.py", "topology/test_windowing.py"],
    "A command to a run": ["runtime/session/test_control_server.py"],
    "A counter": ["test_counters.py"],
    "A duration": ["test_counters.py"],
}


def sections() -> dict[str, list[tuple[str, list[tuple[list[str], list[str]]]]]]:
    """Heading -> files of its diff: path, and hunks as (lines before, lines after)."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title = part.splitlines()[0]
        files: list[tuple[str, list[tuple[list[str], list[str]]]]] = []
        for block in re.findall(r"^```diff\n(.*?)^```$", part, re.M | re.S):
            for line in block.splitlines():
                if line.startswith("--- "):
                    continue
                if line.startswith("+++ b/"):
                    files.append((line.removeprefix("+++ b/"), []))
                elif line.startswith("@@"):
                    files[-1][1].append(([], []))
                else:
                    before, after = files[-1][1][-1]
                    if line[:1] in ("-", " ", ""):
                        before.append(line[1:])
                    if line[:1] in ("+", " ", ""):
                        after.append(line[1:])
        if files:
            found[title] = files
    return found


def apply(root: Path, path: str, hunks: list[tuple[list[str], list[str]]]) -> None:
    """Put each hunk where its lines stand; the last of them may be the beginning of a line."""
    file = root / path
    text = file.read_text() if file.exists() else ""
    for before, after in hunks:
        old, new = "\n".join(before), "\n".join(after)
        if not before:
            assert not text, f"{path} is there already"
            text = new + "\n"
            continue
        if new.startswith(old) or text.count(old + "\n"):
            old, new = old + "\n", new + "\n"
        assert text.count(old) == 1, f"{path} has {text.count(old)} times, where the page wants one:\n{old}"
        text = text.replace(old, new)
    file.write_text(text)


def test_each_section_has_a_check():
    assert set(sections()) == set(CHECKS) == set(TESTS)


@pytest.mark.parametrize("title", CHECKS)
def test_an_addition_touches_few_files(title):
    files = [path for path, _ in sections()[title]]
    assert len(files) == len(set(files)) <= MOST


@pytest.mark.parametrize("title", CHECKS)
def test_the_change_of_the_page_works(title, tmp_path):
    # With bytecode, which stays good for files that are not changed: to compile all takes longer than the check.
    shutil.copytree(ROOT / "esault", tmp_path / "esault")
    shutil.copytree(ROOT / "tests" / "shared", tmp_path / "tests" / "shared")
    for path in ("setup.cfg", "tests/conftest.py", *(f"tests/unit/{each}" for each in TESTS[title])):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    for path, hunks in sections()[title]:
        apply(tmp_path, path, hunks)
    (tmp_path / "check.py").write_text(TOPOLOGY + CHECKS[title] + RUN_TESTS)
    done = subprocess.run(
        [sys.executable, "check.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
