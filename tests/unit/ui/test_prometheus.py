"""Metrics of a run, read over HTTP as Prometheus does."""

from __future__ import annotations

import re
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.errors import UsageError
from esault.ui.prometheus import HOST, PrometheusView, served

pytest.importorskip("prometheus_client")

SPOUT = UnitSnapshot(name="lines", kind="spout", sub_units=1, tuples_out=1000, progress=(25.0, 100.0))
COUNT = UnitSnapshot(
    name="count",
    kind="bolt",
    sub_units=3,
    tuples_in=5000,
    tuples_out=70,
    backlog=12,
    errors=4,
    p50_ms=1.5,
    p99_ms=9.0,
    dropped=2,
    dead_letters=3,
    state_lost=1,
    busy_seconds=2.5,
    late=6,
    watermark=99.5,
)
RUN = Snapshot(
    topology="words", phase="running", draining=False, now=103.5, seconds=3.5, units=(SPOUT, COUNT),
    roots_open=4, roots_replayed=1, deaths=2, free_slots=12, slots=16, changes=5, checkpoint=7, restores=1, roots_emitted=40, roots_acked=36,
)  # fmt: skip


class Heard:
    """A view that keeps what it is told."""

    def __init__(self):
        self.lines, self.notices, self.snapshots = [], [], []

    def line(self, mark, text):
        self.lines.append((mark, text))

    def notice(self, text):
        self.notices.append(text)

    def update(self, snapshot):
        self.snapshots.append(snapshot)


@pytest.fixture
def heard():
    return Heard()


def read(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def values(text):
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


def test_all_there_is_to_know_of_a_run_can_be_read(heard):
    with served(0, heard) as view:
        view.line("count/3", "hello")
        view.update(RUN)
        url = re.fullmatch(r"metrics: (http://127\.0\.0\.1:\d+/metrics)", heard.notices[0])[1]
        found = values(read(url))
        view.update(replace(RUN, roots_open=9))
        assert values(read(url))['esault_roots_open{topology="words"}'] == 9
    assert (heard.lines, len(heard.snapshots)) == ([("count/3", "hello")], 2)
    of_count = 'topology="words",unit="count"'
    assert found[f"esault_tuples_in_total{{{of_count}}}"] == 5000
    assert found[f"esault_tuples_out_total{{{of_count}}}"] == 70
    assert found[f"esault_errors_total{{{of_count}}}"] == 4
    assert found[f"esault_dead_letters_total{{{of_count}}}"] == 3
    assert found[f"esault_dropped_total{{{of_count}}}"] == 2
    assert found[f"esault_late_total{{{of_count}}}"] == 6
    assert found[f"esault_watermark_seconds{{{of_count}}}"] == 99.5
    assert 'esault_watermark_seconds{topology="words",unit="lines"}' not in found
    assert found[f"esault_state_lost_total{{{of_count}}}"] == 1
    assert found[f"esault_busy_seconds_total{{{of_count}}}"] == 2.5
    assert found[f"esault_backlog{{{of_count}}}"] == 12
    assert found[f"esault_sub_units{{{of_count}}}"] == 3
    assert found[f'esault_latency_seconds{{quantile="0.99",{of_count}}}'] == pytest.approx(0.009)
    assert found['esault_lag{topology="words",unit="lines"}'] == 75
    assert found['esault_roots_emitted_total{topology="words"}'] == 40
    assert found['esault_changes_total{topology="words"}'] == 5
    with pytest.raises(urllib.error.URLError):
        read(url)


def test_nobody_beyond_this_machine_can_ask(heard):
    with served(0, heard) as view:
        view.update(RUN)
        assert view._server.server_address[0] == HOST


def test_a_port_that_is_taken_is_found_before_anything_starts(heard):
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--metrics {port}: .* choose another port, or 0"):
            PrometheusView(port, heard)


def test_one_that_is_taken_meanwhile_ends_no_run(heard):
    with served(0, heard) as view, socket.create_server((HOST, 0)) as taken:
        view._port = taken.getsockname()[1]
        view.update(RUN)
        view.update(RUN)
    assert len(heard.snapshots) == 2
    assert "there are no metrics" in heard.notices[0]


def test_where_the_library_is_missing_the_error_says_how_to_get_it(heard, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    with pytest.raises(UsageError, match=r"pip install 'esault\[metrics\]'"):
        PrometheusView(0, heard)


def test_the_page_names_them_all(heard):
    with served(0, heard) as view:
        view.update(RUN)
        names = set(re.findall(r"^# HELP (\w+)", read(heard.notices[0].removeprefix("metrics: ")), re.M))
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "watch-with-prometheus.md").read_text()
    assert set(re.findall(r"^\| `(\w+)`", page, re.M)) == names
