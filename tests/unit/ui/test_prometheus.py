"""Metrics of a run, read over HTTP as Prometheus does."""

from __future__ import annotations

import logging
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.errors import UsageError
from esault.messages.user_metrics import MetricReading
from esault.runtime.session.request import LogView
from esault.ui.listen_address import LOOPBACK
from esault.ui.prometheus import SILENCE, PrometheusView, served

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
    with served("0", heard) as view:
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


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
def test_promtool_finds_nothing_to_mend(heard):
    with served("0", heard) as view:
        view.update(RUN)
        text = read(heard.notices[0].removeprefix("metrics: "))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_record_goes_on_to_a_view_that_shows_records(heard):
    record = logging.LogRecord("mine", logging.WARNING, "here", 1, "it is late", (), None)
    heard.log = lambda record: heard.lines.append(record.getMessage()) or True
    with served("0", heard) as view:
        assert isinstance(view, LogView) and view.log(record)
    assert heard.lines == ["it is late"]
    with served("0", Heard()) as view:
        assert isinstance(view, LogView) and not view.log(record)


def test_nobody_beyond_this_machine_can_ask(heard):
    with served("0", heard) as view:
        view.update(RUN)
        assert isinstance(view, PrometheusView)
        assert view._server._server.server_address[0] == LOOPBACK


def test_a_port_that_is_taken_is_found_before_anything_starts(heard):
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--metrics {port}: .* choose another port, or 0"):
            PrometheusView(str(port), heard)


def test_one_that_is_taken_meanwhile_ends_no_run(heard):
    with served("0", heard) as view, socket.create_server((LOOPBACK, 0)) as taken:
        assert isinstance(view, PrometheusView)
        view._server._port = taken.getsockname()[1]
        view.update(RUN)
        view.update(RUN)
    assert len(heard.snapshots) == 2
    assert "--metrics shows nothing" in heard.notices[0]


def test_where_the_library_is_missing_the_error_says_how_to_get_it(heard, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    with pytest.raises(UsageError, match=r"pip install 'esault\[metrics\]'"):
        PrometheusView("0", heard)


def test_the_page_names_them_all(heard):
    with served("0", heard) as view:
        view.update(RUN)
        names = set(re.findall(r"^# HELP (\w+)", read(heard.notices[0].removeprefix("metrics: ")), re.M))
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "watch-with-prometheus.md").read_text()
    assert set(re.findall(r"^\| `(\w+)`", page, re.M)) == names


class TestOfUsers:
    def test_metrics_of_the_users_own_are_exported_with_their_labels(self, heard):
        metrics = (
            MetricReading("counter", "orders", "Orders that came", (("kind", "web"),), 3.0),
            MetricReading("gauge", "size", "", (("sub_unit", "4"),), 2.5),
            MetricReading("histogram", "price", "", (), ((1.0, 10.0), (1, 2, 3), 50.0)),
        )
        other = replace(SPOUT, metrics=(MetricReading("gauge", "orders", "", (), 7.0),))
        with served("0", heard) as view:
            view.update(replace(RUN, units=(replace(COUNT, metrics=metrics), other)))
            text = read(heard.notices[0].removeprefix("metrics: "))
        assert "# HELP orders_total Orders that came" in text
        found = {name: value for name, value in values(text).items() if not name.startswith("esault_")}
        of_count = 'topology="words",unit="count"'
        assert found == {
            f'orders_total{{kind="web",{of_count}}}': 3,
            f'size{{sub_unit="4",{of_count}}}': 2.5,
            f'price_bucket{{le="1.0",{of_count}}}': 1,
            f'price_bucket{{le="10.0",{of_count}}}': 3,
            f'price_bucket{{le="+Inf",{of_count}}}': 6,
            f"price_count{{{of_count}}}": 6,
            f"price_sum{{{of_count}}}": 50,
        }

    @pytest.mark.parametrize("name", ["orders", "orders_total"])
    def test_a_counter_is_shown_as_a_total_once(self, heard, name):
        metrics = (MetricReading("counter", name, "", (), 3.0),)
        with served("0", heard) as view:
            view.update(replace(RUN, units=(replace(COUNT, metrics=metrics),)))
            text = read(heard.notices[0].removeprefix("metrics: "))
        assert values(text)['orders_total{topology="words",unit="count"}'] == 3
        assert "_total_total" not in text


class TestHealth:
    @pytest.mark.parametrize(
        "change, silent, alive, ready",
        [
            ({}, 0.0, "", ""),
            ({"phase": "starting"}, 0.0, "", "starting"),
            ({"draining": True}, 0.0, "", "ending in order"),
            ({"unforked": 2}, 0.0, "", "2 sub-units cannot be forked"),
            ({}, SILENCE + 1, "the driver has said nothing for 31 s", "the driver has said nothing for 31 s"),
            ({"failure": "unit 'count'"}, 0.0, "unit 'count'", "unit 'count'"),
        ],
    )
    def test_it_says_whether_it_is_alive_and_ready_and_if_not_why(self, heard, change, silent, alive, ready):
        now = [100.0]
        view = PrometheusView("0", heard, lambda: now[0])
        try:
            view.update(replace(RUN, **change))
            now[0] += silent
            base = heard.notices[0].removeprefix("metrics: ").removesuffix("/metrics")
            for path, why in (("/healthz", alive), ("/readyz", ready)):
                try:
                    said = 200, read(base + path)
                except urllib.error.HTTPError as error:
                    said = error.code, error.read().decode()
                assert said == (503 if why else 200, (why or "ok") + "\n")
        finally:
            view.close()

    def test_a_probe_of_another_path_is_not_told_that_all_is_well(self, heard):
        with served("0", heard) as view:
            view.update(RUN)
            base = heard.notices[0].removeprefix("metrics: ").removesuffix("/metrics")
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                read(f"{base}/ready")
            assert refused.value.read() == b"there are /metrics, /healthz and /readyz\n"

    def test_before_the_first_word_it_is_not_ready(self, heard):
        assert PrometheusView("0", heard).not_ready() == "starting"


@pytest.mark.parametrize("wrong", ["", "x", "70000", "localhost:80", "1.2.3:4"])
def test_what_is_no_address_is_refused(heard, wrong):
    with pytest.raises(UsageError, match="write a port .0: any that is free., or ADDRESS:PORT"):
        PrometheusView(wrong, heard)


def test_an_address_beyond_the_loopback_answers_by_any_name(heard):
    with served("0.0.0.0:0", heard) as view:
        view.update(RUN)
        port = heard.notices[0].rpartition(":")[2].partition("/")[0]
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/readyz", headers={"Host": "words.jobs:9464"})
        assert read(asked) == "ok\n"
