"""The cause of a death in words."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from esault.runtime.actors.parent import newest_child
from esault.runtime.process.exits import exit_code, how_ended
from esault.runtime.process.owner import Owner


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


#: the system call that ends one thread, by machine
EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine())


def end_thread_by_thread(event):
    def last():
        event.wait()
        os._exit(7)

    threading.Thread(target=last).start()
    ctypes.CDLL(None).syscall(EXIT, 0)


@pytest.mark.skipif(platform.system() != "Linux" or EXIT is None, reason="knows no system call that ends one thread")
def test_what_a_process_ended_with_is_known_though_its_first_thread_ended_first():
    context = multiprocessing.get_context("fork")
    event = context.Event()
    process = context.Process(target=end_thread_by_thread, args=(event,))
    process.start()
    owner = Owner.of(process.pid)
    while owner.alive():
        time.sleep(0.001)
    assert exit_code(process) is None
    threading.Timer(0.05, event.set).start()
    assert exit_code(process, 5.0) == 7


def test_another_thespian_may_not_tell():
    assert newest_child(object()) is None
    assert newest_child(SimpleNamespace(_myRef=SimpleNamespace(_child_procs=[]))) is None


#: in a process of its own, since what is imported here may be imported already
WITHOUT_DESCRIPTORS = """
import multiprocessing, os, resource
from esault.runtime.process.exits import exit_code

child = multiprocessing.get_context("fork").Process(target=os._exit, args=(7,))
child.start()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print(exit_code(child, 0.5))
"""


def test_the_exit_code_is_known_to_a_parent_that_may_open_no_file():
    done = subprocess.run([sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=False)
    assert done.stdout == "7\n", done.stderr
