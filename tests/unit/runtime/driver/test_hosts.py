"""What user code prints on other hosts, where the terminal is slow."""

from __future__ import annotations

import threading
from collections import deque

from esault.cluster.messages import OutputLine
from esault.runtime.driver import hosts
from esault.runtime.driver.hosts import Hosts


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
