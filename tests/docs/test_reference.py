"""The reference pages say what there is: no more, no less."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from esault.cli.main import cli
from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.counters import UnitCounts, UnitDurations, declared
from esault.messages.settings import Settings
from esault.runtime.session.metrics_tables import CHANGES, RUNS, WINDOWS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_every_setting_is_described():
    text = (REFERENCE / "settings.md").read_text()
    described = {
        w for line in text.splitlines() if line.startswith("| `") for w in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert described == {f.name for f in fields(Settings)}


@pytest.mark.parametrize(("table", "columns"), [("windows", WINDOWS), ("changes", CHANGES), ("runs", RUNS)])
def test_every_column_of_the_metrics_is_described(table, columns):
    text = (REFERENCE / "metrics-tables.md").read_text().split(f"## {table}\n")[1].split("\n## ")[0]
    described = [
        w for line in text.splitlines() if line.startswith("| `") for w in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert sorted(described) == sorted(columns)


PUBLIC = [
    "",
    "bolts",
    "connectors",
    "errors",
    "policies",
    "report",
    "sim",
    "sinks",
    "sources",
    "spark",
    "testing",
    "windows",
]


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_described_and_has_a_docstring(room):
    module = importlib.import_module(f"esault.{room}".rstrip("."))
    words = set(re.findall(r"\w+", (REFERENCE / "api.md").read_text()))
    for name in module.__all__:
        assert name in words, name
        there = getattr(module, name)
        assert not callable(there) or inspect.getdoc(there), name


def test_every_counter_is_described():
    report = (REFERENCE / "report-json.md").read_text()
    metrics = (REFERENCE.parent / "how-to" / "watch-with-prometheus.md").read_text()
    for name in declared(UnitCounts):
        assert f"`{name}`" in report or f"units.NAME.{name}`" in report, name
    for cls in (UnitSnapshot, Snapshot):
        for name, counter in declared(cls).items():
            metric = f"{counter.metric or f'esault_{name}'}{'' if counter.gauge else '_total'}"
            assert f"| `{metric}` |" in metrics, metric
    for name, duration in UnitDurations.declared().items():
        assert f"`{name}`" in report, name
        assert f"| `{duration.metric or f'esault_{name}_seconds'}` |" in metrics, name


@pytest.mark.parametrize("name", cli.list_commands(None))
def test_every_command_and_option_is_described(name):
    text = (REFERENCE / "cli.md").read_text()
    assert f"`esault {name}" in text
    command = cli.get_command(click.Context(cli), name)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[0]}" in text, parameter.opts


def test_options_that_are_described_exist():
    text = (REFERENCE / "cli.md").read_text()
    known = {
        o
        for n in cli.list_commands(None)
        for p in cli.get_command(None, n).params
        for o in (*p.opts, *p.secondary_opts)
        if o.startswith("--")
    }
    for option in re.findall(r"`(--[a-z-]+)", text):
        assert option in known | {"--help"}


def test_pages_that_the_code_cites_are_there():
    for folder in ("esault", "bench", "topologies"):
        for path in (ROOT / folder).rglob("*.py"):
            for page in re.findall(r"[\w./-]+\.md\b", path.read_text()):
                assert (ROOT / page).is_file(), f"{path.relative_to(ROOT)} cites {page}"
