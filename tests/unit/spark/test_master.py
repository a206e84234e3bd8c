"""The URL of a cluster, looked at before a JVM starts."""

from __future__ import annotations

import socket

import pytest

from esault.errors import UsageError
from esault.spark.master import check_master, is_cluster, master_of


@pytest.mark.parametrize(
    "url", ["local", "local[4]", "local[*]", "local[2,3]", "local-cluster[1, 2, 512]", "yarn", "k8s://https://h:443"]
)
def test_urls_that_spark_knows_are_let_pass(url):
    check_master(url)


@pytest.mark.parametrize(
    "url", ["", "lokal", "local[]", "local[x]", "spark://h", "spark://:7077", "http://h:7077", "yarn ", "k8s://"]
)
def test_others_are_refused(url):
    with pytest.raises(UsageError, match="knows no such URL"):
        check_master(url)


def test_a_server_of_spark_connect_is_refused_by_its_name():
    with pytest.raises(UsageError, match="Spark Connect"):
        check_master("sc://h:15002")


def test_one_of_several_masters_that_takes_a_connection_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        closed, port = taken.getsockname()[1], server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{closed},127.0.0.1:{port}")
        with pytest.raises(UsageError, match=f"127.0.0.1:{closed}: "):
            check_master(f"spark://127.0.0.1:{closed},127.0.0.1:99999")


@pytest.mark.parametrize(
    ("url", "elsewhere"),
    [("local", False), ("local[*]", False), ("local-cluster[1,1,1]", True), ("yarn", True), ("spark://h:1", True)],
)
def test_a_cluster_is_where_tasks_run_elsewhere(url, elsewhere):
    assert is_cluster(url) is elsewhere


def test_what_is_asked_for_goes_before_settings_and_these_before_all_cores(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert master_of(None, {}) == "local[*]"
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    assert master_of(None, {}) == "yarn" and master_of(None, {"spark.master": "local[2]"}) == "local[2]"
    assert master_of("local", {"spark.master": "yarn"}) == "local"
