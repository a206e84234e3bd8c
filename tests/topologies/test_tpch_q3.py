from __future__ import annotations

import json
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import depth
import pytest
from running import FOLDER, drained, real, rows, until_emitted

from bench.engines.answers import Q3, TPCH
from esault.testing import LocalRuntime
from esault.topology.locate import locate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The three tables at scale 0.01, by the standard's generator."""
    folder = tmp_path_factory.mktemp("tpch")
    command = [
        Path(sys.executable).with_name("tpchgen-cli"),
        "tbl",
        "-s",
        "0.01",
        "--tables=customer,orders,lineitem",
        f"--output-dir={folder}",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def wanted(tables, sql):
    """(order, revenue in ten-thousandths, date, priority) of the query in a database."""
    for table, columns in TPCH.items():
        sql.execute(f"CREATE TABLE {table} ({columns})")
        sql.execute(f"COPY {table} FROM '{tables}/{table}.tbl' (DELIMITER '|', HEADER false)")
    found = sql.execute(Q3).fetchall()
    return [(order, int(revenue.scaleb(4)), f"{date}", priority) for order, revenue, date, priority in found]


def orders(found):
    """An order's greatest revenue."""
    return sorted((order, *max(v for k, v in found if k == order)) for order in {k for k, _ in found})


def test_the_query_over_streams_is_the_query_over_tables(tables, wanted):
    local = drained("tpch_q3.py", folder=tables, parallelism={"match": 2, "revenue": 2})
    assert orders(rows(local, "orders")) == sorted(wanted)
    assert [value for _, value in sorted(rows(local, "top"))] == wanted[:10]
    # what the specification of the query's generator at this scale says
    assert len(wanted) == 138
    assert Decimal(sum(revenue for _, revenue, *_ in wanted)).scaleb(-4) == Decimal("12364206.8366")
    assert wanted[0] == (47714, 2670105894, "1995-03-11", 0)
    assert wanted[9] == (9696, 2015022188, "1995-02-20", 0)
    assert local.report().units["match"].tuples_out == 1797


@pytest.mark.parametrize("seed", depth.chosen([1, 2], (1,)))
def test_rows_may_come_in_any_order_while_customers_and_orders_move(tables, wanted, seed):
    order = random.Random(seed)
    given = {}
    for spout, file in (("customers", "customer"), ("orders", "orders"), ("items", "lineitem")):
        given[spout] = [(file, line) for line in (tables / f"{file}.tbl").read_text().splitlines()]
        order.shuffle(given[spout])
    local = LocalRuntime(locate(f"{FOLDER}/tpch_q3.py").build({"folder": str(tables)}), spouts=given, seed=seed)
    until_emitted(local, "match", 300)
    for unit in ("match", "revenue"):
        local.split(unit, local.sub_units(unit)[0])
        local.wait_for_change(unit)
    local.run_until_drained()
    assert [change.moved_keys > 0 for change in local.report().changes] == [True, True]
    assert orders(rows(local, "orders")) == sorted(wanted)
    assert [value for _, value in sorted(rows(local, "top"))] == wanted[:10]


def test_the_query_on_real_processes(tables, wanted, tmp_path):
    real(tmp_path, "tpch_q3.py", folder=tables)
    top = [json.loads(line)["value"] for line in (tmp_path / "out/q3/top.jsonl").read_text().splitlines()]
    assert [tuple(row) for row in top] == wanted[:10]
