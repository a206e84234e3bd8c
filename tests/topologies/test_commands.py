"""Every command that the docs and the topologies' own docstrings give for them is one that works."""

from __future__ import annotations

import re

import pytest
from running import FOLDER, ROOT, module

from esault.cli.analyze import command as analyze
from esault.cli.run import command as run
from esault.cli.topology_argument import params_of, place_of
from esault.elasticity.scaling import EVERY_UNIT, check_policies
from esault.runtime.session.plan_check import check_plan
from esault.runtime.session.request import SLOTS
from esault.spark.engine.refusals import refusals
from esault.topology.plan import Plan

FILES = sorted(FOLDER.rglob("*.py"))
TOPOLOGIES = [file for file in FILES if "-> Topology:" in file.read_text()]
PAGE = ROOT / "docs/tutorial/topologies.md"
COMMAND = re.compile(r"^(?:    )?esault (run|analyze) (topologies/\S+)((?: [^#\n]*)?)", re.M)


def commands():
    for file in (*TOPOLOGIES, PAGE, ROOT / "README.md"):
        for found in COMMAND.finditer(file.read_text()):
            # They need their servers: tests/acceptance/test_orders.py, test_connector_topologies.py
            if "/orders/" in found.group(2) or "/connectors/" in found.group(2):
                continue
            yield pytest.param(*found.groups(), id=f"{file.name}: {found.group(0).strip()}")


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Where the commands are typed: a checkout, with the data that they name."""
    (tmp_path / "topologies").symlink_to(FOLDER)
    module("geolife.py").write(tmp_path / "traces", devices=1, fixes=2)
    (tmp_path / "tpch").mkdir()
    for table in ("customer", "orders", "lineitem"):
        (tmp_path / "tpch" / f"{table}.tbl").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(("what", "topology", "rest"), list(commands()))
def test_a_command_that_is_shown_is_understood_and_its_topology_can_start(what, topology, rest):
    command = {"run": run, "analyze": analyze}[what]
    given = command.make_context(what, [topology, *rest.split()]).params
    place = place_of(topology)
    plan = place.build(params_of(place, given["settings"])).plan()
    assert isinstance(plan, Plan)
    if what == "run":
        counts = {unit: int(n) for unit, n in (text.split("=") for text in given["parallelism"])}
        check_plan(plan, given["slots"] or SLOTS, counts)
        check_policies(plan, {EVERY_UNIT: policy for policy in given["policy"]})
    else:
        assert place.load_module().reports


def test_each_topology_says_what_it_shows_what_comes_out_and_how_it_is_run():
    assert len(TOPOLOGIES) >= 10
    for file in TOPOLOGIES:
        text = file.read_text()
        name = file.relative_to(FOLDER)
        docstring = text.split('"""')[1]
        assert "Shows" in docstring or "nexmark" in str(name), name
        assert re.search(r"Out\s+comes?\b", docstring), name
        assert f"esault run topologies/{name}" in docstring or name.name == "word_count.py", name


def test_the_docs_list_every_topology():
    page = PAGE.read_text()
    for file in TOPOLOGIES:
        assert f"(../../topologies/{file.relative_to(FOLDER)})" in page, file


def test_what_the_docs_say_of_spark_is_so():
    splits = ("orders.py", "redis_orders.py", "nats_deliveries.py", "csv_to_parquet.py")
    splits += ("rabbitmq_invoices.py", "inbox_with_customers.py")
    refused = {file: ["topology"] for file in splits}
    for file in TOPOLOGIES:
        for function in re.findall(r"^def (\w+)\([^)]*\) -> Topology:", file.read_text(), re.M):
            plan = place_of(f"{file}:{function}").build({}).plan()
            assert bool(refusals(plan)) == (function in refused.get(file.name, [])), (file, function)
