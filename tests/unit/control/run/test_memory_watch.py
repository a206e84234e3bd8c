"""Hosts that run short of memory: who is moved, who is split, and when a run ends."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.run.memory_watch import MemoryWatch
from esault.errors import UsageError
from esault.messages.probe import HostUsage

GB = 1_000_000_000


class Run:
    """A driver as far as memory is concerned: one unit, whose sub-units have `memory` on `hosts`."""

    def __init__(self, memory, hosts, keyed=True, free=4, most=8, on_disk=False, in_memory=1000):
        self.phase, self.draining, self.busy, self.completed = "running", False, False, None
        self.memory, self.free = memory, free
        self.begun, self.failure, self.notices = [], None, deque()
        self.places = SimpleNamespace(hosts=hosts)
        self.resources = SimpleNamespace(short=frozenset())
        self.scaling = SimpleNamespace(sampler=SimpleNamespace(memory=lambda i: self.memory[i]))
        self.commands = SimpleNamespace(elastic=self.elastic)
        plan = SimpleNamespace(
            keyed=keyed, replicas=1, window=None, batch=not on_disk, objects="key", concurrency=None, tick_every=None
        )
        self.unit = SimpleNamespace(
            name="count", plan=plan, subs=dict.fromkeys(memory), width=len(memory), changing=False
        )
        self.unit.move = lambda *change: self.begun.append(("move", change[0], change[4]))
        self.unit.split = lambda *change: self.begun.append(("split", change[0]))
        rows = SimpleNamespace(elements=in_memory + 100, keys_on_disk=100)
        self.unit.measurements = SimpleNamespace(last=lambda i: SimpleNamespace(rows=rows))
        self.unit.state = SimpleNamespace(tell=lambda i, message: self.begun.append((type(message).__name__, i)))
        self.unit.check_change = lambda n: self.check(n <= most)
        self.units = {"count": self.unit}
        self.hosts = ()

    @staticmethod
    def check(allowed):
        if not allowed:
            raise UsageError("no")

    def elastic(self, name, more):
        self.check(more <= self.free)

    def deliver(self, now):
        pass

    def fail(self, text, now):
        self.failure = self.failure or text


def go(run, used, seconds=6.0, total=4 * GB, other=None):
    """Have `used(t)` be in use on host a for so long; host b is `other`: (in use, in all)."""
    watch = MemoryWatch()
    for step in range(int(seconds / 0.5) + 1):
        now = step * 0.5
        hosts = [HostUsage("a", 1, 0.0, int(used(now)), total)]
        run.hosts = (*hosts, *([HostUsage("b", 1, 0.0, *other)] if other else []))
        watch.step(run, now)
    return run


def test_with_enough_memory_nothing_is_said():
    run = go(Run({1: GB}, {1: "a"}), lambda t: 2.5 * GB, other=(0, 4 * GB))
    assert (run.begun, list(run.notices), run.failure, run.resources.short) == ([], [], None, frozenset())


def test_the_largest_goes_where_there_is_room_and_newcomers_too():
    run = go(Run({1: GB, 2: 2 * GB, 3: 3 * GB}, {1: "a", 2: "a", 3: "b"}), lambda t: 3.5 * GB, 0.0, other=(GB, 8 * GB))
    assert run.begun == [("move", 2, "b")]
    assert run.resources.short == {"a"}
    assert list(run.notices) == ["host a: 3.5 GB of 4.0 GB of memory are in use; most has count/2, 2.0 GB"]


def test_what_grows_fast_is_moved_in_time():
    run = go(Run({1: GB}, {1: "a"}), lambda t: 2.2 * GB + t * 0.1 * GB, 3.0, other=(0, 8 * GB))
    assert run.begun == [("move", 1, "b")]
    assert "grows by 100 MB/s" in run.notices[0]


def test_one_that_fits_nowhere_gives_way_to_one_that_does_and_else_is_split():
    hosts = {1: "a", 2: "a"}
    assert go(Run({1: 3 * GB, 2: GB // 2}, hosts), lambda t: 3.5 * GB, 0.0, other=(GB, 4 * GB)).begun == [
        ("move", 2, "b")
    ]
    assert go(Run({1: 3 * GB}, {1: "a"}), lambda t: 3.5 * GB, 0.0, other=(GB, 4 * GB)).begun == [("split", 1)]


@pytest.mark.parametrize(
    ("more", "why"), [({"keyed": False}, "no keys"), ({"free": 0}, "no slot"), ({"most": 1}, "bound")]
)
def test_where_neither_can_be_the_run_ends_with_the_numbers(more, why):
    run = go(Run({1: 3 * GB}, {1: "a"}, **more), lambda t: 3.9 * GB, 0.0, other=(GB, 4 * GB))
    assert run.begun == [], why
    assert run.failure == (
        "host a: 3.9 GB of 4.0 GB of memory are in use; most has count/1, 3.0 GB: the run ends before the system kills it; "
        "give it more memory or more hosts, or keep less"
    )


def test_one_host_is_told_of_first_and_ends_only_when_it_is_full():
    run = go(Run({1: 3 * GB}, {1: "a"}), lambda t: 3.5 * GB)
    assert (run.begun, run.failure, len(run.notices)) == ([], None, 1)
    run.completed = SimpleNamespace(number=7)
    go(run, lambda t: 3.85 * GB)
    assert run.failure.endswith("or keep less; --resume goes on from checkpoint 7")


def test_it_does_not_end_for_what_other_programs_take():
    run = go(Run({1: GB // 10}, {1: "a"}), lambda t: 3.95 * GB)
    assert run.failure is None
    assert "most has count/1, 100 MB" in run.notices[0]


def test_a_change_has_time_to_show_before_the_next_one():
    run = go(Run({1: GB, 2: GB}, {1: "a", 2: "a"}), lambda t: 3.9 * GB, 2.5, other=(0, 8 * GB))
    assert run.begun == [("move", 1, "b")]
    assert run.failure is None
    run = go(Run({1: GB, 2: GB}, {1: "a", 2: "a"}), lambda t: 3.5 * GB, 3.5, other=(0, 8 * GB))
    assert len(run.begun) == 2


def test_nothing_is_begun_while_a_change_or_checkpoint_is_on():
    for attribute, target in (("busy", "run"), ("changing", "unit")):
        run = Run({1: GB}, {1: "a"})
        setattr(run if target == "run" else run.unit, attribute, True)
        assert go(run, lambda t: 3.5 * GB, other=(0, 8 * GB)).begun == []


def test_where_nothing_can_move_keys_go_to_a_disk_before_the_run_ends():
    run = go(Run({1: GB, 2: 2 * GB}, {1: "a", 2: "a"}, on_disk=True), lambda t: 3.9 * GB, 0.0)
    assert (run.begun, run.failure) == ([("Spill", 2)], None)
    assert run.notices[-1] == (
        "host a runs short of memory: count/2, which has 2.0 GB, has the states of keys on disk from now on"
    )
    run = go(Run({1: GB}, {1: "a"}, on_disk=True), lambda t: 3.9 * GB, 7.0)
    assert run.begun == [("Spill", 1)] * 3  # what one has brought shows before the next
    assert len(run.notices) == 2


@pytest.mark.parametrize(("attribute", "of"), [("busy", "run"), ("changing", "unit")])
def test_a_change_that_takes_long_ends_no_run_whose_keys_can_go_to_a_disk(attribute, of):
    run = Run({1: GB, 2: 2 * GB}, {1: "a", 2: "a"}, on_disk=True)
    setattr(run if of == "run" else run.unit, attribute, True)
    go(run, lambda t: 3.5 * GB, 2.0)
    assert run.begun == []  # what the change brings is waited for, as long as there is room
    go(run, lambda t: 3.9 * GB, 4.0)
    assert (run.begun, run.failure) == ([("Spill", 2)] * 2, None)


def test_few_keys_are_not_what_takes_the_memory():
    run = go(Run({1: GB}, {1: "a"}, on_disk=True, in_memory=255), lambda t: 3.5 * GB, 0.0)
    assert run.begun == []
    run = go(Run({1: 2 * GB}, {1: "a"}, on_disk=True, in_memory=255), lambda t: 3.9 * GB, 0.0)
    assert "the run ends" in run.failure


def test_growth_alone_puts_nothing_on_disk():
    assert go(Run({1: GB}, {1: "a"}, on_disk=True), lambda t: 2.2 * GB + t * 0.1 * GB, 3.0).begun == []
