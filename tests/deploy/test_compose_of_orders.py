"""The compose file of topologies/orders, without containers: a schema takes it, and it says what the script that starts the servers does."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import kafka_broker
import postgres_server
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "topologies" / "orders"
sys.path.insert(0, str(FOLDER))
import orders  # noqa: E402

DEFAULTS = {name: each.default for name, each in inspect.signature(orders.topology).parameters.items()}


@pytest.fixture(scope="module")
def services():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]


@pytest.mark.parametrize(
    "file", [FOLDER / "compose.yaml", ROOT / "deploy" / "compose.yaml"], ids=lambda file: file.parent.name
)
def test_the_schema_of_compose_takes_it(file):
    pytest.importorskip(
        "check_jsonschema", reason="check-jsonschema is not installed: it has the schema of compose files"
    )
    asked = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_images_are_of_the_versions_that_the_tests_start(services):
    assert services["kafka"]["image"] == f"apache/kafka:{kafka_broker.VERSION}"
    (tested,) = re.findall(r"the tests run against (\d+)", (ROOT / "docs/how-to/postgres.md").read_text())
    assert services["postgres"]["image"] == f"postgres:{tested}"


def test_ports_and_passwords_are_the_defaults_of_the_programs(services):
    told = services["kafka"]["environment"]
    assert told["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{DEFAULTS['kafka']}"
    host, port = DEFAULTS["kafka"].split(":")
    assert services["kafka"]["ports"] == [f"127.0.0.1:{port}:{port}"] and host == "localhost"
    assert f"PLAINTEXT://:{port}" in told["KAFKA_LISTENERS"].split(",")
    dsn = dict(each.split("=") for each in DEFAULTS["postgres"].split())
    assert services["postgres"]["ports"] == ["127.0.0.1:5432:5432"] and "port" not in dsn
    assert services["postgres"]["environment"] == {
        "POSTGRES_DB": dsn["dbname"],
        "POSTGRES_USER": dsn["user"],
        "POSTGRES_PASSWORD": dsn["password"],
    }
    others = re.findall(r'"--(kafka|postgres)", default="([^"]*)"', (FOLDER / "produce.py").read_text())
    assert dict(others) == {name: DEFAULTS[name] for name in ("kafka", "postgres")}


def test_settings_are_those_of_the_script_that_starts_them_without_containers(services):
    """But for addresses, and that a broker of tests makes no topic by itself and is quick."""
    ours = kafka_broker.own_properties(9092, 0, 0, 9093)
    told = kafka_broker.properties_of(services["kafka"]["environment"])
    addresses = {"listeners", "advertised.listeners", "controller.quorum.voters", "listener.security.protocol.map"}
    assert {name: value for name, value in told.items() if name in ours and name not in addresses} == {
        name: ours[name] for name in told if name in ours and name not in addresses
    }
    (call,) = re.findall(r"kafka\.topic\((.*)\)", (FOLDER / "servers.py").read_text())
    partitions, topic = ast.literal_eval(f"({call})")
    assert (told["num.partitions"], topic) == (str(partitions), "orders")
    command = services["postgres"]["command"].split()
    assert command[0] == "postgres"
    asked = dict(each.split("=") for each in command[2::2])
    assert asked == {name: postgres_server.SETTINGS[name] for name in asked} and asked["wal_level"] == "logical"
