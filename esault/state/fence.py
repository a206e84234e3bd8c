"""The order of checkpoints in an object store, which has no locks: of several runs the one that began last completes them.

Each name `checkpoint-NUMBER.json` is given once, by a put on condition that there is none. A run that begins takes the next one for a *claim*,
which is no checkpoint; a run that takes a name which another has is too late. Names may be removed once later ones are there: so a run that has put one
looks for later ones as well. Of two runs that go on from the same checkpoint one at most completes the next.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import time

from esault.errors import FencedError, UsageError
from esault.object_store.object_path import ObjectPath

__all__ = ["Fence"]

#: what a name begins with that is taken and stands for no checkpoint
CLAIM = b"claim "
_NAME = re.compile(r"checkpoint-(\d{8})\.json")


class Fence:
    """The names of one folder, from the side of one run."""

    def __init__(self, path: ObjectPath, last: int = 0) -> None:
        """`last`: the number of the last name that this run has taken; 0: it has none."""
        self._path = path
        self._last = last
        self._token = secrets.token_hex(8)
        #: the highest number that there was when checkpoints were first listed: what the run goes on from was not chosen before
        self._seen: int | None = None
        #: what was put under names behind the last one, of which it may not be known whether it is there
        self._tried: dict[int, bytes] = {}
        #: name -> whether it is a checkpoint: they do not change
        self._known: dict[str, bool] = {}

    @property
    def last(self) -> int:
        """Return the number after which this run goes on; without a claim the highest that there is."""
        return self._last or max(self._numbers(), default=0)

    def checkpoints(self) -> list[ObjectPath]:
        """Return the names of complete checkpoints, the newest first."""
        numbers = self._numbers()
        if self._seen is None:
            self._seen = max(numbers, default=0)
        paths = [self._named(number) for number in sorted(numbers, reverse=True)]
        return [path for path in paths if self._is_checkpoint(path)]

    def claim(self, before: int = 0) -> None:
        """Take the folder over from runs that used it, and go on with numbers above `before`. Raises UsageError where one completes checkpoints now."""
        seen = max(self._numbers(), default=0) if self._seen is None else self._seen
        numbers = [seen + 1, *([before] if before > seen + 1 else [])]
        mine = all(self._put(number, self._claimed()) for number in numbers)
        if not mine or any(each > seen and each not in numbers for each in self._numbers()):
            raise UsageError(
                f"a run completes checkpoints in {self._path} at this moment: end it first, by `esault stop` where it runs, or choose another "
                "place with --state"
            )
        self._last = numbers[-1]

    def complete(self, number: int, data: bytes) -> None:
        """Put the manifest of a checkpoint there: from here on it is complete. Raises FencedError where another run has the folder."""
        # Of those that were given up the names are taken, too: a run that claims the next one is seen whichever it is.
        for each in range(self._last + 1, number):
            self._take(each, self._claimed())
        self._take(number, data)
        self._known[self._named(number).name] = True
        if any(each > number for each in self._numbers()):
            raise self._fenced()
        self._last = number
        self._tried.clear()

    def over(self) -> list[ObjectPath]:
        """Return the names of claims before the last one of this run: no checkpoint, and of no use."""
        return [
            path
            for path in map(self._named, self._numbers())
            if path.name < self._named(self._last).name and not self._is_checkpoint(path)
        ]

    def _take(self, number: int, data: bytes) -> None:
        # A name is tried with one content: what the store has taken, but not answered in time, is found to be ours.
        if not self._put(number, self._tried.setdefault(number, data)):
            raise self._fenced()

    def _put(self, number: int, data: bytes) -> bool:
        return self._named(number).write_absent(data)

    def _fenced(self) -> FencedError:
        who = ""
        for number in sorted(self._numbers(), reverse=True):
            data = self._content(self._named(number))
            if number > self._last and data is not None and data.startswith(CLAIM):
                said = json.loads(data[len(CLAIM) :])
                if said["token"] != self._token:
                    who = f", on host {said['host']} (process {said['process']}, {said['at']})"
                    break
        return FencedError(
            f"another run has taken {self._path} over{who}: this one ends, and has committed nothing that the other does not know of"
        )

    def _claimed(self) -> bytes:
        said = {
            "token": self._token,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        return CLAIM + json.dumps(said).encode()

    def _numbers(self) -> list[int]:
        return [int(found[1]) for name in self._path.children() if (found := _NAME.fullmatch(name))]

    def _named(self, number: int) -> ObjectPath:
        return self._path / f"checkpoint-{number:08d}.json"

    def _is_checkpoint(self, path: ObjectPath) -> bool:
        if path.name not in self._known:
            data = self._content(path)
            if data is None:
                return False  # removed since it was listed
            self._known[path.name] = not data.startswith(CLAIM)
        return self._known[path.name]

    @staticmethod
    def _content(path: ObjectPath) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
