"""An object whose `open` fails where it comes back: it is tried again, or left out, and its state stays."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key, fail, skip
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

OPENED: list[str] = []
FAILS: set[int] = set()


class Opened(Bolt):
    """Counts; the calls of `open` in FAILS do not connect."""

    def __init__(self):
        self.n = 0

    def open(self, context):
        OPENED.append(self.key)
        if len(OPENED) in FAILS:
            raise ConnectionError("not now")

    def process(self, key, value):
        self.n += 1
        self.emit(key, self.n)


class Timed(Opened):
    """Tells its count a moment later."""

    def process(self, key, value):
        self.n += 1
        self.timer("soon", self.context.now() + 0.5, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, self.n)


class Ticking(Opened):
    """Tells its count from time to time."""

    def process(self, key, value):
        self.n += 1

    def tick(self, now):
        self.emit(self.key, self.n)


class Finished(Opened):
    """Tells its count at its end."""

    def process(self, key, value):
        self.n += 1

    def finish(self):
        self.emit(self.key, self.n)


def run(bolt, on_error, fails, rows="aaaaaaaa", rate=1, **options):
    OPENED.clear()
    FAILS.clear()
    FAILS.update(fails)
    t = Topology("opened")
    spout = Items([(key, 1) for key in rows])
    t.spout("rows", Paced(spout, rate=rate) if rate else spout).bolt(
        "count", bolt, grouping=by_key(), on_error=on_error, **options
    )
    local = LocalRuntime(t)
    local.run_until_drained()
    return local


@pytest.mark.parametrize("options", [{}, {"keys_in_memory": 1}, {"idle_after": 0.4}])
@pytest.mark.parametrize("fails", range(3, 7))  # the first two are of a fresh object, and a look at what it opens
def test_a_key_that_comes_back_has_its_state_when_open_works_the_second_time(fails, options):
    local = run(Opened, fail(retries=1), {fails}, "abababab", **options)
    assert local.emitted("count") == [(key, n) for n in range(1, 5) for key in "ab"]


@pytest.mark.parametrize("options", [{}, {"keys_in_memory": 1}, {"idle_after": 0.4}])
def test_a_tuple_that_is_skipped_for_it_takes_no_state_along(options):
    local = run(Opened, skip(), {4}, "abababab", **options)
    assert len(local.emitted("count")) == 7
    for key in "ab":
        counts = [n for each, n in local.emitted("count") if each == key]
        assert counts == list(range(1, len(counts) + 1))


class Tally(Opened):
    """The same in a window."""

    def process(self, key, value):
        self.n += 1

    def finish(self):
        self.emit(self.key, self.n)


def test_so_have_its_windows():
    OPENED.clear()
    FAILS.clear()
    FAILS.add(4)
    t = Topology("opened")
    rows = t.spout("rows", Paced(Items([("a", 1)] * 8), rate=1))
    rows.window("count", Tally, TumblingWindow(100), time=lambda value: value, on_error=fail(retries=1))
    local = LocalRuntime(t)
    local.run_until_drained()
    assert local.emitted("count") == [("a", 8)]


@pytest.mark.parametrize("fails", range(3, 7))
@pytest.mark.parametrize(
    ("bolt", "options"), [(Timed, {}), (Ticking, {"tick_every": 1}), (Finished, {}), (Finished, {"expire_after": 1})]
)
def test_what_comes_back_for_another_hook_is_tried_again_and_may_be_left_out(bolt, options, fails):
    more = {"idle_after": 0.2, **options}
    tried = run(bolt, fail(retries=1), {fails}, "abab", **more)
    assert tried.driver.failure is None
    assert {key for key, _ in tried.emitted("count")} == set("ab")
    left = run(bolt, skip(), {fails}, "abab", **more)
    assert left.driver.failure is None
    assert left.report().units["count"].errors == (len(OPENED) >= fails)


@pytest.mark.parametrize("bolt", [Opened, Timed, Finished])
def test_an_error_of_open_names_the_hook_and_the_key_whatever_it_was_opened_for(bolt):
    run(bolt, fail(), (), "abab", idle_after=0.2)
    for fails in range(3, len(OPENED) + 1):
        with pytest.raises(TopologyFailed, match=r"unit 'count', open, key '[ab]': ConnectionError: not now"):
            run(bolt, fail(), {fails}, "abab", idle_after=0.2)
