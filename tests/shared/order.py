"""In which order files of tests are run: those that take long first, so that no worker is left alone with one in the end.

`durations.json` beside this file has the seconds of each file that takes more than two. They were measured on a busy
machine with two cores, and are guesses: nothing depends on them but the order. `long.txt` names the tests that `make quick` leaves to
`make test`, since they compute for long: what `LONG` says. `make durations` writes both anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).with_name("durations.json")
LONG_TESTS = Path(__file__).with_name("long.txt")
#: what the last run that was measured cost, by file and by test, with all processes that the tests started and waited for
PROCESSOR = Path(os.environ.get("ESAULT_PROCESSOR", Path(__file__).parents[2] / "out" / "processor.txt"))
#: processor seconds from which on a file or test is listed
SHOWN = 0.5
#: after so many tests the list is written as it is by then
OFTEN = 10
#: seconds of processor time of a test, with a tenth of its examples, from which on it is long; the mean where it has parameters
LONG = 0.07
#: what is quick for the reader's sake: each of its tests reads all modules if it is the first
KEPT = "tests/unit/test_import_directions.py"
ROOT = Path(__file__).parents[2]
#: folders whose tests need a JVM or a server
OUTSIDE = ("tests/spark/", "tests/connectors/")
#: files that share what takes long to make: one worker has all of them
TOGETHER = re.compile(r"tests/(spark|connectors/\w+)/")
#: files elsewhere that ask the server of such a group
BESIDE = {
    f"tests/acceptance/test_{name}.py": f"connectors/{server}"
    for name, server in {
        "kafka": "kafka",
        "orders": "kafka",
        "rabbitmq": "rabbitmq",
        "streams": "rabbitmq",
        "connector_topologies": "rabbitmq",
        "object_stores": "object_stores",
        "state_in_a_store": "object_stores",
    }.items()
}


def group(path: str) -> str:
    """The name of the tests that one worker runs, one after another: a file, or a folder of files."""
    found = TOGETHER.match(path)
    return found[1] if found else BESIDE.get(path, path)


def group_of(path: Path) -> str:
    """The same of the path of a collected file."""
    return group(path.relative_to(ROOT).as_posix())


def durations() -> dict[str, float]:
    """Seconds by file; a file that is not there takes little."""
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def longest_first(items: list[Any]) -> None:
    """Sort collected tests by how long their groups take; those of a group stay together and in their order."""
    seconds: Counter[str] = Counter()
    for path, of_file in durations().items():
        seconds[group(path)] += of_file
    groups = {path: group_of(path) for path in {item.path for item in items}}
    keys = {path: (-seconds[of_path], of_path) for path, of_path in groups.items()}
    items.sort(key=lambda item: keys[item.path])


def function(nodeid: str) -> str:
    """The name of a test without its parameters."""
    return nodeid.partition("[")[0]


def long_tests() -> frozenset[str]:
    """Tests that `make quick` leaves out, without their parameters."""
    return frozenset(LONG_TESTS.read_text().split())


def processor() -> float:
    """Seconds of processor time of this process and of all that it started, also of those that live on: servers, JVMs.

    A process that has ended without its parent's waiting for it is not seen any more, nor one whose parent has ended.
    """
    ticks, asked = 0, [os.getpid()]
    while asked:
        pid = asked.pop()
        with contextlib.suppress(OSError):  # it has ended in between
            # behind the name, which may hold spaces: utime, stime, cutime and cstime are fields 14 to 17 (proc(5))
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for thread in Path(f"/proc/{pid}/task").iterdir():
                asked += map(int, (thread / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


class Meter:
    """Says with each test what processor time it took, in the process that runs it."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[Any]:
        """Look at the clock before."""
        item.began = processor()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: Any) -> Iterator[Any]:
        """Look at the clock after; the report that comes next brings it to the recorder."""
        try:
            return (yield)
        finally:
            item.user_properties.append(("processor", processor() - item.began))


class Recorder:
    """Adds up what each file takes, in the process that hears of all tests, and writes the tables in the end."""

    def __init__(self, asked: str = "1") -> None:
        self.seconds: Counter[str] = Counter()
        #: processor seconds by test without parameters, and how many there are
        self.processor: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self._asked = asked
        #: processor seconds by file and by test
        self.of_files: Counter[str] = Counter()
        self.of_tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count setup, call and teardown."""
        self.seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.when == "teardown" and (took := dict(report.user_properties).get("processor")) is not None:
            self.processor[function(report.nodeid)] += took
            self.tests[function(report.nodeid)] += 1
            self.of_files[report.nodeid.partition("::")[0]] += took
            self.of_tests[report.nodeid] += took
            if len(self.of_tests) % OFTEN == 0:  # all runs for long, and may be ended before
                write_processor(self.of_files, self.of_tests)

    def pytest_sessionfinish(self) -> None:
        """Write what was run over what is there."""
        write_processor(self.of_files, self.of_tests)
        if self._asked == "processor":
            return
        if self._asked == "long":
            found = [
                test
                for test, took in self.processor.items()
                if took / self.tests[test] >= LONG and not test.startswith(KEPT)
            ]
            LONG_TESTS.write_text("".join(f"{test}\n" for test in sorted(found)))
            return
        known = {**durations(), **{path: round(took, 1) for path, took in self.seconds.items()}}
        known = {path: took for path, took in sorted(known.items()) if took > 2 and (ROOT / path).exists()}
        TABLE.write_text(json.dumps(known, indent=1) + "\n")


def write_processor(files: Counter[str], tests: Counter[str]) -> None:
    """List the processor seconds of all that was run, files and then tests, what takes most first."""
    parts = []
    for name, took in (("files", files), ("tests", tests)):
        lines = [f"{seconds:8.2f} {what}" for what, seconds in took.most_common() if seconds >= SHOWN]
        parts.append(f"{sum(took.values()):8.2f} all {len(took)} {name}\n" + "".join(f"{line}\n" for line in lines))
    PROCESSOR.parent.mkdir(exist_ok=True)
    PROCESSOR.write_text("\n".join(parts))


def recorders() -> list[Recorder | Meter]:
    """None unless times are asked for: `ESAULT_DURATIONS=1` those of files, `long` those of tests, `processor` neither: a list only."""
    asked = os.environ.get("ESAULT_DURATIONS")
    if not asked:
        return []
    return [Meter(), *([] if "PYTEST_XDIST_WORKER" in os.environ else [Recorder(asked)])]
