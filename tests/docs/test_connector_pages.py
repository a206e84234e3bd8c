"""The page of each system that is reached over the network has the same form, and says all of its connectors and options."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHELVES = [import_module(f"esault.{name}") for name in ("sources", "sinks", "lookups")]
#: page -> its connectors
PAGES = {
    "kafka": ("KafkaSource", "KafkaSink"),
    "postgres": ("PostgresSink", "PostgresChanges", "PostgresLookup"),
    "delta": ("DeltaSink",),
    "redis": ("RedisSource", "RedisSink", "RedisLookup"),
    "nats": ("NatsSource", "NatsSink"),
    "rabbitmq": ("RabbitMQSource", "RabbitMQSink", "RabbitMQStreamSource", "RabbitMQStreamSink"),
    "mqtt": ("MqttSource", "MqttSink"),
    "http": (
        *("HttpServerSource", "HttpPollSource", "SseSource", "WebSocketSource"),
        *("WebhookSink", "SseSink", "WebSocketSink"),
    ),
    "object-stores": (),  # those of files take addresses
}
#: named on the page: they take addresses in place of paths
OF_OBJECTS = ("TextFiles", "JsonFiles", "CsvFiles", "ArrowFiles", "ParquetFiles", "Directory", "JsonLines", "Parquet")


def written(page):
    return (ROOT / "docs" / "how-to" / f"{page}.md").read_text()


def find(name):
    return next(getattr(shelf, name) for shelf in SHELVES if name in shelf.__all__)


def section(text, title):
    """What stands below this heading, up to the next one of its level."""
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found


def test_each_connector_that_needs_a_server_has_a_page():
    listed = {name for names in PAGES.values() for name in names}
    shown = {name for shelf in SHELVES for name in shelf.__all__ if name[0].isupper()}
    of_servers = {name for name in shown if find(name).__module__.startswith("esault.connectors.")}
    assert of_servers <= listed
    assert listed <= shown


@pytest.mark.parametrize("page", PAGES)
def test_it_begins_with_how_to_install_it_and_lines_that_run(page):
    text = written(page)
    head = text[: text.index("\n## ")]
    (extra,) = re.findall(r"\A# [^\n]+\n\n```\npip install 'esault\[(\w+)\]'\n```\n", text)
    assert f"\n{extra} =\n" in (ROOT / "setup.cfg").read_text()
    (lines, *_) = re.findall(r"^```python\n(.*?)^```$", head, re.M | re.S)
    assert "Topology(" in lines
    assert any(f"{name}(" in lines for name in PAGES[page] or OF_OBJECTS)
    for name in PAGES[page]:
        assert getattr(find(name), "extra", "") in (extra, "")


@pytest.mark.parametrize("page", PAGES)
def test_guarantees_and_errors_stand_under_the_same_headings(page):
    text = written(page)
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[-1] == "What goes wrong"
    for name in PAGES[page] or OF_OBJECTS:
        assert f"`{name}`" in section(text, "What is guaranteed"), name
    errors = section(text, "What goes wrong")
    assert "| what is said or seen | what it means, and what to do |\n|---|---|\n" in errors
    assert len(re.findall(r"^\| .* \|$", errors, re.M)) > 5


def test_a_topology_shows_each_of_them():
    shown = " ".join(file.read_text() for file in (ROOT / "topologies").rglob("*.py"))
    missing = [name for names in PAGES.values() for name in names if not re.search(rf"\b{name}\(", shown)]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_all_options_stand_in_a_table(page):
    named = "".join(re.findall(r"^\| ([^|]*) \|", written(page), re.M))
    assert "| option | |\n|---|---|\n" in written(page) or not PAGES[page]
    for name in PAGES[page]:
        for option in inspect.signature(find(name)).parameters:
            assert re.search(rf"`{option}\b", named), f"{name}({option}=...)"
