"""For all tests: what they share, in `shared`, how many examples they take, and signals.

On a developer's machine each run looks elsewhere, and what it finds is to be mended; in CI the examples are the same
each time, so that a change is judged by what it changed. `shared/depth.py` says how many there are. Timings never decide.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from esault.policies import register, unregister

sys.path.insert(0, str(Path(__file__).with_name("shared")))
import depth
import held
import order
from commands_asked import Done

#: Java would be at it for ten seconds and more beside other tests; `make test` has the classes written before
os.environ.setdefault("ESAULT_CLASS_ARCHIVE", "off")
#: seeds that show something together
ENOUGH = 6
#: bytes that tests write at a time, at most
WRITTEN = 4 << 30


def _memory():
    """A folder in memory with room enough, from which programs can be run; None where there is none."""
    with contextlib.suppress(OSError):
        found = os.statvfs("/dev/shm")
        if found.f_bavail * found.f_frsize >= WRITTEN and not found.f_flag & os.ST_NOEXEC:
            return "/dev/shm"
    return None


# No test shows what a disk does when the power fails, and thousands of times a test waits until a file is on it.
if (memory := _memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)


@pytest.fixture(scope="session", autouse=True)
def _runs_apart():
    """Runs of these tests have a folder of their own: a command that looks for what runs finds no other's, however many test beside it."""
    place = tempfile.gettempdir()  # as short as sockets want it
    with (
        tempfile.TemporaryDirectory(
            prefix="runs-", dir=place if len(place) < 24 else "/tmp", ignore_cleanup_errors=True
        ) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Give the handler of `caplog` its format back: pytest adds it to loggers of pyspark, too, which make it JSON for good."""
    plugin = item.config.pluginmanager.get_plugin("logging-plugin")
    plugin.caplog_handler.setFormatter(plugin.formatter)


@pytest.fixture
def name_policy():
    """Give policies names, for one test."""
    given = []

    def name_policy(name, made):
        register(name, made)
        given.append(name)

    yield name_policy
    for name in given:
        unregister(name)


@pytest.fixture
def done():
    """Counts what happens in a test's runs, and fails where what must happen did not in any of them."""
    counted = Done()
    yield counted
    counted.check()


@pytest.fixture(scope="module")
def _by_test():
    found = defaultdict(Done)
    yield found
    for counted in found.values():
        if counted.runs >= ENOUGH:
            counted.check()


@pytest.fixture
def done_in_all(request, _by_test):
    """The same for a test that runs once for each seed, over all of them; one that runs for a few says nothing."""
    return _by_test[request.function.__name__]


depth.load()
depth.without_constants()


#: what is collected stays to the end: a million objects at which the collector of garbage would look, again and again
gc.disable()


def pytest_collection_finish():
    """Count what was imported and collected as there for good. As often as usual, garbage takes a seventh of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_configure(config):
    """Write down how long files take, where that is asked for."""
    for recorder in order.recorders():
        config.pluginmanager.register(recorder)


def pytest_collection_modifyitems(items):
    """Take as many examples as the profile says, and what takes long first; what needs a JVM or a server is slow."""
    depth.divide(items)
    order.longest_first(items)
    long = order.long_tests()
    for item in items:
        if item.nodeid.startswith(order.OUTSIDE):
            item.add_marker(pytest.mark.slow)
        elif order.function(item.nodeid) in long:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Behind the last test of a group end what its tests shared."""
    try:
        return (yield)
    finally:
        if nextitem is None or order.group_of(nextitem.path) != order.group_of(item.path):
            held.let_go()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile` files that share a fixture which takes long to make go to one worker."""
    from xdist.scheduler import LoadFileScheduling

    class Grouped(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return order.group(super()._split_scope(nodeid))

    return Grouped(config, log) if config.getoption("dist") == "loadfile" else None


if threading.current_thread() is threading.main_thread():
    # A process inherits what its parent ignores (`nohup` ignores SIGHUP), and not what its parent handles: so those that
    # tests start have the signals' defaults.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
