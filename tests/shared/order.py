"""In which order files of tests are run: those that take long first, so that no worker is left alone with one in the end.

`durations.json` beside this file has the seconds of each file that takes more than two. They were measured on a busy
machine with two cores, and are guesses: nothing depends on them but the order. `make durations` writes them anew.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("durations.json")
ROOT = Path(__file__).parents[2]
#: folders whose tests need a JVM or a server
OUTSIDE = ("tests/spark/", "tests/connectors/")
#: files that share a fixture which takes long to make: one worker has all of them
TOGETHER = re.compile(r"tests/(spark|connectors/\w+)/")


def group(path: str) -> str:
    """The name of the tests that one worker runs, one after another: a file, or a folder of files."""
    found = TOGETHER.match(path)
    return found[1] if found else path


def durations() -> dict[str, float]:
    """Seconds by file; a file that is not there takes little."""
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def longest_first(items: list[Any]) -> None:
    """Sort collected tests by how long their groups take; those of a group stay together and in their order."""
    seconds: Counter[str] = Counter()
    for path, of_file in durations().items():
        seconds[group(path)] += of_file
    groups = {path: group(path.relative_to(ROOT).as_posix()) for path in {item.path for item in items}}
    keys = {path: (-seconds[of_path], of_path) for path, of_path in groups.items()}
    items.sort(key=lambda item: keys[item.path])


class Recorder:
    """Adds up what each file takes, in the process that hears of all tests, and writes the table in the end."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count setup, call and teardown."""
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write what was run over what is there."""
        known = {**durations(), **{path: round(took, 1) for path, took in self.seconds.items()}}
        known = {path: took for path, took in sorted(known.items()) if took > 2 and (ROOT / path).exists()}
        TABLE.write_text(json.dumps(known, indent=1) + "\n")


def recorder() -> Recorder | None:
    """None unless durations are asked for."""
    return Recorder() if os.environ.get("ESAULT_DURATIONS") and "PYTEST_XDIST_WORKER" not in os.environ else None
