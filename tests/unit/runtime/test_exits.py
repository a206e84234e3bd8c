"""The cause of a death in words."""

from __future__ import annotations

import multiprocessing
import os
import signal
from types import SimpleNamespace

import pytest

from esault.runtime.exits import how_ended, newest_child


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, "its process is gone"),
        (3, "exit code 3: look for what calls exit"),
        (0, "exit code 0"),
        (-signal.SIGKILL, "SIGKILL: by hand, or by the system for want of memory"),
        (-signal.SIGSEGV, "SIGSEGV: native code in it crashed"),
        (-signal.SIGTERM, "ended by SIGTERM"),
        (-200, "ended by signal 200"),
    ],
)
def test_each_way_to_end_has_its_answer(code, words):
    assert words in how_ended(code)


def end(how):
    if how >= 0:
        os._exit(how)
    os.kill(os.getpid(), -how)


@pytest.mark.parametrize("how", [3, -signal.SIGKILL])
def test_what_a_process_ended_with_is_known_once_it_is_reaped(how):
    process = multiprocessing.get_context("fork").Process(target=end, args=(how,))
    process.start()
    actor = SimpleNamespace(_myRef=SimpleNamespace(_child_procs=[None, SimpleNamespace(childProc=process)]))
    found = newest_child(actor)
    process.join()
    assert found.exitcode == how


def test_another_thespian_may_not_tell():
    assert newest_child(object()) is None
    assert newest_child(SimpleNamespace(_myRef=SimpleNamespace(_child_procs=[]))) is None
