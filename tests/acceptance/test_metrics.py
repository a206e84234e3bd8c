"""Metrics for Prometheus, read from a run on real processes."""

from __future__ import annotations

import re
import urllib.request

import pytest

pytestmark = pytest.mark.slow


def test_a_run_says_what_it_does_while_it_does_it(command):
    pytest.importorskip("prometheus_client")
    command.start("waiting", "--metrics", "0", "--policy", "none", out="out.jsonl", rows=100_000, rate=1000.0)
    url = None
    while url is None:
        line = command.process.stderr.readline()
        assert line, "the run ended without a word of its metrics"
        found = re.search(r"metrics: (http://127\.0\.0\.1:\d+/metrics)", line)
        url = found and found[1]

    def processed():
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        found = re.search(r'^esault_tuples_in_total\{topology="[^"]+",unit="count"\} (\S+)$', text, re.M)
        return found and float(found[1]) > 100 and text

    text = command.until(processed)
    assert re.search(r'esault_latency_seconds\{quantile="0.99",topology="[^"]+",unit="count"\} 0\.\d+', text)
    acked = re.search(r'esault_ack_latency_seconds_count\{topology="[^"]+",unit="(\w+)"\} (\S+)', text)
    assert acked and float(acked[2]) > 0
    assert 'le="+Inf",topology="' in text
    with urllib.request.urlopen(url.replace("/metrics", "/readyz"), timeout=10) as answer:
        assert answer.read() == b"ok\n"
    assert re.search(r'esault_sub_units\{topology="[^"]+",unit="count"\} 1\.0', text)
    command.process.terminate()
    assert command.wait()[0] == 0


SHOP = """
from esault import Bolt, Sink, Topology, by_key
from esault.sources import Items, Paced


class Count(Bolt):
    def open(self, context):
        self.orders = context.counter("orders", "Orders that came")

    def process(self, key, value):
        self.orders.inc()
        self.context.histogram("price", buckets=[10]).observe(value % 20)
        self.emit(key, value)


class Kept(Sink):
    def write(self, rows):
        self.context.counter("written", "Rows that were written").inc(len(rows))


def topology(name: str = "shop") -> Topology:
    t = Topology(name)
    rows = t.spout("rows", Paced(Items([(i % 20, i) for i in range(2000)]), 1000))
    rows.bolt("count", Count, by_key()).sink("kept", Kept())
    return t
"""


def test_metrics_of_ones_own_and_spans_come_by_otlp_while_keys_move(command, tmp_path):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from otlp_receiver import Receiver

    (tmp_path / "shop.py").write_text(SHOP)
    receiver = Receiver()
    try:
        command.start("shop.py:topology", "--otlp", receiver.url, "--policy", "none", "--checkpoint", "0.5")
        command.running()
        command.scale("count", 3)
        code, _, err = command.wait()
        assert code == 0, err
        found, about = receiver.metrics()
        assert about["service.name"] == command.name
        (orders,), (price,) = found["orders"].sum.data_points, found["price"].histogram.data_points
        assert (orders.as_double, list(price.bucket_counts)) == (2000, [1100, 900])
        assert found["written"].sum.data_points[0].as_double == 2000
        assert {"checkpoint", "change rescale"} <= {span.name for span in receiver.spans()}
    finally:
        receiver.close()
