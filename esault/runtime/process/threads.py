"""The stacks of a process's threads."""

from __future__ import annotations

import os
import sys
import threading
import traceback

import esault

__all__ = ["dump_threads"]

#: characters of all stacks together
LONGEST = 20_000
_ENGINE = os.path.dirname(os.path.abspath(esault.__file__)) + os.sep


def dump_threads(first: int | None) -> tuple[str, str]:
    """Return where the thread `first` is, as "process, slow.py:12", and the stacks of all threads but the caller's.

    The place is the innermost line outside the engine's package and Python's library; empty where there is none.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    where = ""
    stacks = []
    for ident, frame in sorted(frames.items(), key=lambda item: item[0] != first):
        stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=True)
        if ident == first:
            where = next((_place(line) for line in stack if _is_of_user(line.filename)), "")
        stack.reverse()
        stacks.append(f"{names.get(ident, ident)}:\n{''.join(stack.format())}")
    return where, "\n".join(stacks)[:LONGEST]


def _is_of_user(path: str) -> bool:
    library = os.path.dirname(os.__file__) + os.sep
    # Installed packages are in a folder of the library's, and are none of Python's own.
    own = path.startswith(library) and "site-packages" not in path
    return not (path.startswith((_ENGINE, "<frozen")) or own)


def _place(line: traceback.FrameSummary) -> str:
    return f"{line.name}, {os.path.basename(line.filename)}:{line.lineno}"
