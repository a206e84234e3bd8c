"""What a command loads before it has started anything: each module counts in the time from command to prompt."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import sys
import esault, esault.cli.main, esault.cli.run, esault.sources
import esault.runtime.session.request, esault.runtime.session.run, esault.runtime.worker.sub_unit_actor
import esault.ui.choose, esault.ui.prometheus
print(*sys.modules)
"""
#: each with what it brings along takes a hundredth of a second or more
HEAVY = {
    "asyncio",
    "http.client",
    "http.server",
    "multiprocessing.pool",
    "numpy",
    "pandas",
    "pyarrow",
    "ssl",
    "wsgiref.simple_server",
}


def test_a_run_loads_nothing_that_few_runs_need():
    loaded = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)
    assert "esault.flow.worker.bolt_unit" in loaded  # that is what was looked at
