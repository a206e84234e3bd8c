"""`esault connectors`: what it tells of each connector comes from the connector's own class."""

from __future__ import annotations

import pytest

from esault import Sink, connectors, lookups, sinks, sources
from esault.cli.main import main


@pytest.fixture
def printed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")

    def of(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["connectors", *arguments])
        assert not ended.value.code
        return capsys.readouterr().out

    return of


def test_each_connector_of_the_engine_says_what_it_is_and_what_it_promises(printed):
    lines = {line.split()[0]: line for line in printed().splitlines()[1:] if line and line[0] != "`"}
    exported = {name for name in (*sources.__all__, *sinks.__all__, *lookups.__all__) if name[0].isupper()}
    assert exported <= set(lines)
    for name in exported:
        assert connectors.find(name).delivery_guarantee in lines[name], name
        assert connectors.find(name).delivery_guarantee, name
    kinds = [line.split()[1] for line in lines.values()]
    assert kinds == sorted(kinds, key=["source", "sink", "lookup"].index)
    assert (lines["Items"].split()[1], lines["JsonLines"].split()[1]) == ("source", "sink")
    assert lines["RedisLookup"].split()[1] == "lookup" and lines["RedisLookup"].rstrip().endswith("esault[redis]")
    assert lines["SparkTable"].rstrip().endswith("esault[parquet]")


def test_one_is_explained_with_its_options_and_how_to_install_it(printed):
    text = printed("KafkaSink")
    assert "from esault.sinks import KafkaSink" in text
    assert "pip install 'esault[kafka]'" in text
    assert "bootstrap_servers: str = 'localhost:9092'" in text
    assert sinks.KafkaSink.delivery_guarantee in text


def test_a_table_to_look_up_in_is_explained_too(printed):
    text = printed("PostgresLookup")
    assert text.startswith("PostgresLookup: a lookup\n  from esault.lookups import PostgresLookup")
    assert "expire_after_write: float | None = 60.0" in text
    assert lookups.PostgresLookup.delivery_guarantee in text


class Silent(Sink):
    def write(self, rows):
        pass


def test_one_of_a_program_that_says_nothing_is_listed_all_the_same(printed):
    connectors.register("Silent", Silent)
    try:
        assert "Silent" in printed()
        assert "a sink" in printed("Silent")
    finally:
        connectors.unregister("Silent")


def test_a_name_that_is_not_there_is_refused_with_those_that_are(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["connectors", "Kafkasink"])
    assert ended.value.code == 2
    assert "there is no connector 'Kafkasink'" in capsys.readouterr().err
