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
    assert re.search(r'esault_sub_units\{topology="[^"]+",unit="count"\} 1\.0', text)
    command.process.terminate()
    assert command.wait()[0] == 0
