"""Several `run()` in one process do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import itertools
import threading
import time

from esault import Bolt, Topology, by_key, run, start
from esault.sinks import Collect
from esault.sources import Items, Paced


class Double(Bolt):
    def process(self, key, value):
        self.emit(key, 2 * value)


def build(name, rows):
    t = Topology(name)
    doubled = t.spout("rows", Items([("a", number) for number in range(rows)])).bolt("double", Double, grouping=by_key())
    doubled.sink("rows-out", Collect())
    return t


def one() -> Topology:
    return build("one", 1000)


def two() -> Topology:
    return build("two", 2000)


def endless() -> Topology:
    t = Topology("endless")
    t.spout("rows", Paced(Items(lambda: (("a", n) for n in itertools.count())), rate=100)).bolt("double", Double, grouping=by_key())
    return t


if __name__ == "__main__":
    found = {}

    def go(topology):
        rows = run(topology, policy="none").collected["rows-out"]
        found[topology.__name__] = len(rows), sum(value for _, value in rows)

    threads = [threading.Thread(target=go, args=(topology,)) for topology in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lasting = start(endless, policy="none")
    while lasting.status().phase != "running":
        time.sleep(0.05)
    go(one)
    assert lasting.running and lasting.status().units
    lasting.stop()
    print(sorted(found.items()))
"""


@pytest.mark.slow
def test_two_at_once_in_threads_and_another_while_one_goes_on(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "two.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.splitlines()[-1] == "[('one', (1000, 999000)), ('two', (2000, 3998000))]"
