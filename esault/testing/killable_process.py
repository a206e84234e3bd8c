"""A process with one object in it, which is asked over a pipe and ends by SIGKILL."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any, NoReturn

from esault.payload.codec import Codec

__all__ = ["KillableProcess"]

_HEAD = struct.Struct(">I")
#: modules that processes have imported since this one has looked
_imported: dict[str, None] = {}


class KillableProcess:
    """A process with one object in it, which is called by the name of a hook."""

    #: ends of pipes to all of them: none may hold those of another
    _pipes: set[int] = set()  # noqa: RUF012

    def __init__(self, serve: Callable[[str, tuple[Any, ...]], Any]) -> None:
        theirs, self._asks = os.pipe()
        self._answers, answers = os.pipe()
        _import_as_before()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of threads at a fork: the child calls nothing of the parent's
            self.pid = os.fork()
        if not self.pid:
            for pipe in (*self._pipes, self._asks, self._answers):
                os.close(pipe)
            _serve(serve, theirs, answers)
        os.close(theirs)
        os.close(answers)
        self._pipes.update((self._asks, self._answers))

    def call(self, hook: str, *arguments: Any) -> Any:
        """Return what the hook returns. Raises AssertionError where it raises, or ends the process."""
        _send(self._asks, (hook, arguments))
        answer = _receive(self._answers)
        assert answer is not None, f"{hook} ended its process"
        fine, result, imported = answer
        _imported.update(dict.fromkeys(imported))
        assert fine, f"{hook} raised, where it is legal to call it:\n{result}"
        return result

    def kill(self) -> None:
        """End the process, whatever it is at."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for pipe in (self._asks, self._answers):
            self._pipes.discard(pipe)
            os.close(pipe)


def _serve(serve: Callable[[str, tuple[Any, ...]], Any], asks: int, answers: int) -> NoReturn:
    gc.freeze()  # to look for garbage among what was the parent's would copy all of its memory
    known = len(sys.modules)
    try:
        while (asked := _receive(asks)) is not None:
            hook, arguments = asked
            try:
                said: tuple[bool, Any] = (True, serve(hook, tuple(arguments)))
                Codec().pack_value(said)
            except BaseException:
                said = (False, traceback.format_exc())
            # The newest only: to look at the name of each module would copy the pages in which they are.
            imported = list(islice(reversed(sys.modules), max(0, len(sys.modules) - known)))[::-1]
            known = len(sys.modules)
            _send(answers, (*said, imported))
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # nothing is tidied up, as in a crash
    raise AssertionError


def _import_as_before() -> None:
    """Import here what such processes did, or each of dozens does it again: pandas alone takes half a second."""
    for name in _imported:
        if name not in sys.modules:
            with contextlib.suppress(Exception):  # it may be made by others, as they are imported
                importlib.import_module(name)
    _imported.clear()


def _send(pipe: int, value: Any) -> None:
    # As in the engine values are what they were: lists, members of an Enum, one's own objects.
    data = Codec().pack_value(value)
    view = memoryview(_HEAD.pack(len(data)) + data)
    while view:
        view = view[os.write(pipe, view) :]


def _receive(pipe: int) -> Any:
    """The next value; None where the other end is gone."""
    head = _taken(pipe, _HEAD.size)
    return None if head is None else Codec().unpack(_taken(pipe, _HEAD.unpack(head)[0]) or b"")


def _taken(pipe: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        more = os.read(pipe, size - len(data))
        if not more:
            return None
        data += more
    return data
