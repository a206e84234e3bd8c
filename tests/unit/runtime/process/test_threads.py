"""Stacks of threads: the one that is asked for first, and its innermost line outside the engine."""

from __future__ import annotations

import threading

from esault.runtime.process.threads import dump_threads


def waits(ready, end):
    ready.set()
    end.wait()  # Python's own code from here on


def test_the_innermost_line_of_the_users_code_and_all_stacks():
    ready, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=waits, args=(ready, end), name="esault-data", daemon=True)
    thread.start()
    ready.wait()
    try:
        where, text = dump_threads(thread.ident)
    finally:
        end.set()
        thread.join()
    line = waits.__code__.co_firstlineno + 2
    assert where == f"waits, test_threads.py:{line}"
    assert text.startswith("esault-data:\n")
    assert "end.wait()" in text
    assert "dump_threads" not in text


def test_a_thread_that_is_gone_has_no_place():
    assert dump_threads(1)[0] == ""
