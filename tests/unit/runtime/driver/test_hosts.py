"""The hosts of a run: which it waits for, and what user code prints on them where the terminal is slow."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import SimpleNamespace

from esault.cluster.messages import OutputLine
from esault.runtime.driver import hosts
from esault.runtime.driver.hosts import Hosts
from esault.runtime.remote.host_connection import LostHost, Refusing


def test_lines_that_are_dropped_are_told_of_once(monkeypatch):
    monkeypatch.setattr(hosts, "_MOST_LINES", 4)
    here = object.__new__(Hosts)  # without links, or a thread that prints
    here._lines, here.notices = deque(), deque()
    here._lines_there, here._dropping = threading.Event(), False

    def say(*lines):
        for line in lines:
            here._take(None, OutputLine("count/3", str(line)))

    say(*range(10))
    assert [text for _, text in here._lines] == ["0", "1", "2", "3"]
    here._lines.popleft()
    say(10, 11)  # it is as slow as it was
    assert len(here.notices) == 1
    here._lines.clear()
    say(*range(10))
    assert len(here.notices) == 2


def starting(*up, since=0.0, lost=()):
    """Hosts of a run that has not begun, on nodes a, b and c; these are up."""
    here = object.__new__(Hosts)
    here._hosts = SimpleNamespace(nodes=[(name, 2) for name in "abc"])
    here._links = {name: SimpleNamespace(up=name if name in up else None) for name in "abc"}
    here.cluster = SimpleNamespace(hosts=dict.fromkeys(up), lose=lambda name: here.cluster.hosts.pop(name, None))
    here._since = time.monotonic() - since
    here._addresses, here._were_lost, here._where = {name: name for name in "abc"}, set(), {}
    here._refusals, here._unavailable, here.notices, here.usage = {}, {}, deque(), {}
    for name in lost:
        here._lost(LostHost(name, "killed"))
    here.notices.clear()
    return here


def test_a_run_waits_for_all_hosts_that_were_there_when_it_was_asked_for():
    assert starting("a", "b", "c").ready
    assert not starting("a", "b").ready
    assert not starting().ready
    assert starting("a", "b").late is starting().late is None


def test_it_begins_without_one_that_was_lost_meanwhile_and_says_so():
    here = starting("a", "b", lost="c")
    assert here.ready
    here.tell_missing()
    assert list(here.notices) == ["host c is not there: the run begins without it, and uses it as soon as it can"]
    assert not starting("a", lost="c").ready  # b may come


def test_it_begins_without_one_that_takes_long():
    here = starting("a", since=hosts.READY_WITHIN + 1)
    assert here.late is None
    assert here.ready
    here.tell_missing()
    assert len(here.notices) == 2


def test_without_any_host_it_ends_and_names_them():
    here = starting(since=hosts.READY_WITHIN + 1)
    assert not here.ready
    assert here.late == "no answer from a, b, c within 40 s"


def test_one_that_will_not_take_it_ends_it():
    here = starting("a", "b", since=3.0)
    here._refusals["c"] = "other packages"
    assert here.late == "a host does not take this run: other packages"


def refusing(here, misfit, **why):
    for name, text in why.items():
        here._take(SimpleNamespace(address=name), Refusing(text, misfit))
    return here


def test_it_begins_without_one_that_cannot_take_it_just_now_and_says_why():
    here = refusing(starting("a", "b"), False, c="c: host c drains")
    assert (here.ready, here.late) == (False, None)  # for a moment
    here = refusing(starting("a", "b", since=6.0), False, c="c: host c drains")
    assert (here.ready, here.late) == (True, None)
    here.tell_missing()
    assert list(here.notices) == [
        "host c is not there (host c drains): the run begins without it, and uses it as soon as it can"
    ]
    refusing(here, True, c="c: other packages")
    assert not here.ready
    assert here.late == "a host does not take this run: c: other packages"


def test_where_none_can_take_it_just_now_it_ends_and_says_why():
    here = refusing(starting(since=3.0), False, a="a: Connection refused", b="b: no free slot", c="c: no free slot")
    assert (here.ready, here.late) == (False, None)
    here._since -= 3.0
    assert here.late == "no host takes this run now: a: Connection refused; b: no free slot; c: no free slot"
