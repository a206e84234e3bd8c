"""The calls of sinks' hooks in the driver's process: one that never returns does not hold up the end of a run."""

import threading

import pytest

from esault.errors import SinkError
from esault.runtime.driver.committer import Committer


@pytest.mark.parametrize("threaded", (False, True))
def test_a_call_that_never_returns_is_left_in_time(threaded):
    for_ever = threading.Event()
    committer = Committer(threaded, lambda: None)
    assert not committer.call_within(for_ever.wait, 0.01)
    for_ever.set()


@pytest.mark.parametrize("threaded", (False, True))
def test_one_that_returns_is_done_and_its_error_is_raised(threaded):
    committer, did = Committer(threaded, lambda: None), []
    assert committer.call_within(lambda: did.append(1), 60)
    assert did == [1]

    def fails():
        raise SinkError("refused")

    with pytest.raises(SinkError, match="refused"):
        committer.call_within(fails, 60)
