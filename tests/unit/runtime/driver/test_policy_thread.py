"""Policies that take too long are left behind."""

from __future__ import annotations

import threading

import pytest

from esault.errors import PolicyTimeout
from esault.runtime.driver.policy_thread import PolicyThread


def test_answers_and_errors_come_through():
    thread = PolicyThread(5.0)
    assert thread.ask(lambda: (1, 2)) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        thread.ask(lambda: [1 / 0])
    assert thread.ask(list) == []
    thread.close()


def test_one_that_never_returns_is_ended_and_the_next_call_works():
    thread = PolicyThread(0.05)
    seen = []

    def forever():
        seen.append(threading.current_thread())
        while True:
            pass

    with pytest.raises(PolicyTimeout, match="longer than 0.05 s"):
        thread.ask(forever)
    slow_machine = PolicyThread(5.0)
    assert slow_machine.ask(lambda: ["still here"]) == ["still here"]
    slow_machine.close()
    seen[0].join(5.0)
    assert not seen[0].is_alive()
    thread.close()
