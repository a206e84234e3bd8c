"""What user code logs, from its processes to the terminal, to a service's log and to the script's own handlers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = str(Path(__file__).parents[2])

SHOP = """
import logging
import sys

from esault import Bolt, Topology, by_key, run
from esault.sources import Items

log = logging.getLogger(__name__)


class Count(Bolt):
    def process(self, key, value):
        log.info("order of %s", key, extra={"order": value})
        self.context.logger.warning("by the context")
        if value == 2:
            try:
                1 / 0
            except ZeroDivisionError:
                log.exception("bad order " + "x" * 9000)
        print("printed")


def topology() -> Topology:
    t = Topology("shop")
    t.spout("orders", Items([("a", 1), ("b", 2)])).bolt("count", Count, by_key())
    return t


if __name__ == "__main__":
    logging.basicConfig(level="WARNING", filename="root.log", format="%(name)s %(levelname)s %(unit)s/%(sub_unit)s %(message).9s")
    orders = logging.FileHandler("orders.log")
    orders.setFormatter(logging.Formatter("%(asctime)s %(order)s", "%Y"))
    orders.addFilter(lambda record: hasattr(record, "order"))
    logging.getLogger("shop").addHandler(orders)
    logging.getLogger("shop").setLevel("INFO")
    run(topology)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def started(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": ROOT}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_service_reads_json_on_standard_error_and_nothing_else(folder):
    done = started(folder, "-m", "esault", "run", "shop.py", "--log-format", "json", "--log-level", "info")
    said = [json.loads(line) for line in done.stderr.splitlines()]
    mine = [each for each in said if each["logger"] == "shop"]
    assert sorted((each["level"], each["message"][:9]) for each in mine) == [
        ("error", "bad order"),
        ("info", "order of "),
        ("info", "order of "),
        ("warning", "by the co"),
        ("warning", "by the co"),
    ]
    assert {(each["unit"], each["topology"]) for each in mine} == {("count", "shop")}
    assert len({each["run"] for each in mine}) == len({each["sub_unit"] for each in mine}) == 1
    assert [each["order"] for each in mine if "order" in each] == [1, 2]
    (bad,) = [each for each in mine if each["level"] == "error"]
    assert bad["exception"].endswith("ZeroDivisionError: division by zero")
    assert done.stdout.count("] printed") == 2


@pytest.mark.parametrize("last", ["", "1 / 0"])
def test_a_line_without_an_end_and_bytes_are_shown_when_the_process_ends(folder, last):
    told = 'sys.stdout.buffer.write(b"in bytes\\n")\n        print("dots ..", end="", flush=True)'
    (folder / "shop.py").write_text(SHOP.replace('print("printed")', f"{told}\n        {last}"))
    done = subprocess.run(
        [sys.executable, "-m", "esault", "run", "shop.py", "--plain"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if last else 0)
    assert "] in bytes\n" in done.stdout
    assert "] dots ..\n" in done.stdout or "] dots ..dots ..\n" in done.stdout


def test_a_failure_is_a_record_too(folder):
    (folder / "bad.py").write_text(
        SHOP.replace("1 / 0", "raise ValueError('seven')").replace("ZeroDivisionError", "KeyError")
    )
    done = subprocess.run(
        [sys.executable, "-m", "esault", "run", "bad.py", "--log-format", "json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
    )
    last = json.loads(done.stderr.splitlines()[-1])
    assert (done.returncode, last["level"], last["logger"]) == (1, "error", "esault.run")
    assert "unit 'count'" in last["message"] and "ValueError: seven" in last["message"]


def test_the_scripts_own_handlers_get_it_once_with_unit_and_sub_unit(folder):
    done = started(folder, "shop.py")
    lines = (folder / "root.log").read_text().splitlines()
    (sub_unit,) = {line.split()[2] for line in lines if line.startswith("shop ")}
    assert sub_unit.startswith("count/")
    assert [line.partition(f" {sub_unit} ")[2] for line in lines if line.startswith("shop WARNING")] == [
        "by the co"
    ] * 2
    assert lines.count(f"shop ERROR {sub_unit} bad order") == 1
    assert [line.split()[1] for line in (folder / "orders.log").read_text().splitlines()] == ["1", "2"]
    assert done.stderr == ""


@pytest.mark.parametrize("shown", ["", "ui=0", "metrics=0"])
def test_a_script_that_configures_nothing_has_warnings_on_standard_error_whatever_shows_the_run(folder, shown):
    begin = SHOP.partition("    logging.basicConfig")[0]
    (folder / "shop.py").write_text(f"{begin}    run(topology, {shown})\n")
    done = started(folder, "shop.py")
    assert done.stderr.count("WARNING shop: by the context") == 2


def test_lines_of_other_hosts_carry_unit_sub_unit_and_host(folder, nodes):
    nodes.start("a")
    nodes.start("b")
    done = started(
        folder,
        *("-m", "esault", "run", "shop.py", "--log-format", "json", "--log-level", "info", "--parallelism", "count=4"),
        *nodes.options,
    )
    said = [json.loads(line) for line in done.stderr.splitlines()]
    mine = [each for each in said if each["logger"] == "shop"]
    assert len([each for each in mine if each["level"] == "info"]) == 2
    assert {each["unit"] for each in mine} == {"count"} and {each["host"] for each in mine} <= {"a", "b"}
    assert [len(each["message"]) for each in mine if each["level"] == "error"] == [9010]
