"""The process that commits to a Delta table: it reads requests, lines of JSON, and answers each by one.

It ends when there is none to ask any more: its input is at the end, or the process that started it is gone. A commit that
runs then is finished first; who comes next finds it in the table, or does it anew.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import traceback
from collections.abc import Iterator
from typing import Any

from setproctitle import setproctitle

from esault.errors import EsaultError
from esault.sinks.delta.commits import DeltaCommits

__all__ = ["serve"]

#: seconds between two looks whether the process that started this one is there
_LOOK = 5.0
_ERRNO = re.compile(r"\(os error (\d+)\)")


def serve(path: str, parent: int) -> None:
    """Answer requests for the table at `path` until there can be none. `parent`: id of the process that started this one."""
    setproctitle(f"esault commits to {path}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the run ends in order
    answers = os.dup(1)
    os.dup2(2, 1)  # nothing else may write there
    commits = DeltaCommits(path)
    for line in _lines(parent):
        try:
            answer = json.dumps(_answer(commits, json.loads(line)))
            data = memoryview(answer.encode() + b"\n")
            while data:
                data = data[os.write(answers, data) :]
        except BrokenPipeError:
            return


def _lines(parent: int) -> Iterator[bytes]:
    rest = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], _LOOK)[0]:
            continue
        piece = os.read(0, 1 << 16)
        if not piece:
            return
        rest += piece
        *lines, rest = rest.split(b"\n")
        yield from lines


def _answer(commits: DeltaCommits, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": getattr(commits, request.pop("do"))(**request)}
    except ImportError as error:
        return {"error": str(error), "missing": True}
    except (KeyboardInterrupt, SystemExit):
        raise
    except EsaultError as error:
        return {"error": str(error), "errno": getattr(error.__cause__, "errno", None)}
    except BaseException as error:  # a panic of Rust is no Exception
        found = _ERRNO.search(str(error))
        said = str(error) or repr(error)
        if isinstance(error, (AssertionError, TypeError, AttributeError, KeyError)):
            said = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        errno = getattr(error, "errno", None) or (int(found.group(1)) if found else None)
        return {"error": f"Delta table {commits.path}: {said}", "errno": errno}
