"""The disk of a run's state: it fills up, its `fsync` fails or lies, and a power cut forgets what was not made durable.

The engine's own code writes real files in a folder in memory; here is what `fsync` has promised of them.
"""

from __future__ import annotations

import builtins
import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.simulation.events import Events
from esault.state import files, piece_file

__all__ = ["Disk"]

#: modules that write state
_WRITERS: tuple[Any, ...] = (files, piece_file)


class Disk:
    """Stands for `os` and `open` in the modules that write state."""

    def __init__(self, folder: Path, events: Events, seed: int) -> None:
        self.folder, self._events = folder, events
        #: until when nothing can be written
        self.full_until = 0.0
        #: until when an `fsync` fails as often as not, and until when it makes nothing durable and does not say so
        self.failing_until = self.lying_until = 0.0
        self._order = random.Random(f"{seed} disk")
        #: files whose `fsync` has failed: the system counts their pages as written, so that the next one says yes
        #: (Rebello et al., Can Applications Recover from fsync Failures?, USENIX ATC 2020)
        self._given_up: set[int] = set()
        #: what `fsync` said yes to and did not do
        self.lies = 0
        #: inode -> what is durable of it; name -> inode, as far as that is durable
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, int] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have the engine write through it."""
        before = [(module, module.os) for module in _WRITERS]
        for module in _WRITERS:
            module.os, module.open = self, self._open
        try:
            yield
        finally:
            for module, system in before:
                module.os = system
                del module.open

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _check(self) -> None:
        if self._events.now < self.full_until:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _open(self, path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        """Stand for `open`."""
        if "r" not in mode:
            self._check()
        made = builtins.open(path, mode, *arguments, **options)  # noqa: SIM115 - who asked closes it
        if "r" not in mode:
            inode = os.fstat(made.fileno()).st_ino
            self._contents.pop(inode, None)
            self._given_up.discard(inode)
        return made

    def fsync(self, fd: int) -> None:
        """`os.fsync`: what was written, or the names in a folder, are durable from here on."""
        self._check()
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        inode = os.fstat(fd).st_ino
        if self._events.now < self.failing_until and self._order.random() < 0.5:
            self._given_up.add(inode)
            raise OSError(errno.EIO, "Input/output error")
        if self._events.now < self.lying_until:
            self.lies += 1
            return
        if path.is_dir():
            self._names = self._listed()
            alive = {*self._names.values()}
            self._contents = {inode: data for inode, data in self._contents.items() if inode in alive}
        elif inode not in self._given_up:
            self._contents[inode] = path.read_bytes()

    def _listed(self) -> dict[str, int]:
        return {each.name: each.stat().st_ino for each in os.scandir(self.folder) if each.is_file()}

    def cut_power(self, r: random.Random) -> int:
        """Leave what is durable, and of the rest what may have got there by chance; return how many files are not as they were."""
        now, changed = self._listed(), 0
        was = {inode: (self.folder / name).read_bytes() for name, inode in now.items()}
        for name in sorted({*now, *self._names} - {"lock"}):
            inode = now.get(name)
            if self._names.get(name) != inode and r.random() < 0.5:
                inode = self._names.get(name)
            path = self.folder / name
            if inode is None or (inode not in self._contents and inode not in was):
                changed += path.exists()
                path.unlink(missing_ok=True)
                continue
            data = self._contents.get(inode)
            if data is None:  # not made durable: any beginning of it
                data = was[inode][: r.randint(0, len(was[inode]))]
            if now.get(name) is None or data != was[now[name]]:
                changed += 1
                path.write_bytes(data)
        self._given_up.clear()
        self._names = self._listed()
        self._contents = {inode: (self.folder / name).read_bytes() for name, inode in self._names.items()}
        return changed
