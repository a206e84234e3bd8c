"""A visible file that grows by whole commits, written by several processes.

Each writer has a log of its own, where rows wait; a commit copies a stretch of a log to the end of the visible file.
Beside the file `out/x.jsonl` stands the hidden folder `out/.x.jsonl.esault`:

    run.lock      locked (flock) by the driver from `begin` to `end`: one run at a time
    commit.lock   locked while a commit is copied: one commit at a time
    state.json    how long the visible file is, and how far each log has been copied; replaced whole
    RUN-N-X.log   a writer's log

A commit appends, makes the visible file durable, then replaces the state. If the process dies in between, the file
is longer than the state says: who comes next, under the lock, cuts off that tail, and the commit that comes again
copies it anew. A commit that comes twice finds in the state that its stretch has been copied. A tail that is not
the start of what some log still has to copy was written by another program, and is never cut off.

It is one module of over 300 lines: writers, commits and recovery hold one layout of files.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from esault.errors import SinkError
from esault.sinks.durable import replace_file, sync_folder, unwritable, write_fully

__all__ = ["CommittedFile", "committed_length"]

_PIECE = 1024 * 1024
#: logs that are gone of which it is known how far they were copied
_REMEMBERED = 1000


@dataclass
class _State:
    """The content of state.json."""

    #: identity of the run that writes, or wrote last
    run: str = ""
    #: what was said to `end`; None from `begin` to `end`, and after a crash
    ended: bool | None = None
    #: bytes of the visible file that are whole commits
    length: int = 0
    #: name of a log -> how many of its bytes have been copied
    copied: dict[str, int] = field(default_factory=dict)


def committed_length(path: str) -> int | None:
    """Return how many bytes of the visible file `path` are whole commits; None: all of it, or no run has written it.

    Raises SinkError for a damaged state."""
    state = CommittedFile(path)._load()
    if state is None or state.ended is not None or os.path.getsize(path) < state.length:
        return None
    return state.length


class CommittedFile:
    """See the module. `path` is the visible file. Raises SinkError, naming path and remedy."""

    def __init__(self, path: str, header: bytes = b"") -> None:
        """`header`: a line that the file begins with."""
        self.path, self._header = path, header
        self.folder = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.esault")
        self._state_path = os.path.join(self.folder, "state.json")
        self._run_lock: int | None = None

    def check(self, mode: str) -> None:
        """Check that a run could write here; changes nothing."""
        if os.path.isdir(self.path):
            raise SinkError(f"{self.path}: is a folder; write the name of a file in it, such as {self.path}/rows.jsonl")
        folder = os.path.dirname(os.path.abspath(self.path))
        passing = folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")
        if passing or (os.path.exists(self.path) and not os.path.isfile(self.path)):
            raise SinkError(
                f"{self.path}: is no file on a disk, and what was written there could not be kept until it is committed; write to a file. To "
                "see values in the terminal, end with a step: .map(print)"
            )
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            raise SinkError(f"{self.path}: {folder} is a file, not a folder; write elsewhere")
        place = self.path if os.path.exists(self.path) else folder
        if not os.access(place, os.W_OK) or not os.access(folder, os.W_OK | os.X_OK):
            raise SinkError(f"{self.path}: no permission to write in {folder}; allow it (chmod), or write elsewhere")
        if mode == "error" and os.path.lexists(self.path):
            state = self._load()
            # from a run that did not end well another may go on; only `begin` is told whether this one does
            if state is None or state.ended:
                raise self._exists()
        if os.path.exists(self._lock_path("run")):
            with open(self._lock_path("run"), "rb") as lock:
                self._try_lock(lock.fileno(), fcntl.LOCK_SH)

    def begin(self, run: str, mode: str, resumed: bool, from_savepoint: bool = False) -> None:
        """Once per run: take the run's lock and do with old content what `mode` says.

        `from_savepoint`: what a run that is resumed has written may be elsewhere.
        """
        try:
            os.makedirs(self.folder, exist_ok=True)
            lock = os.open(self._lock_path("run"), os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._try_lock(lock, fcntl.LOCK_EX)
                with self._locked():
                    known = resumed and not (from_savepoint and self._load() is None)
                    state = (
                        self._resume() if known else self._start("append" if resumed and mode == "replace" else mode)
                    )
                    state.run, state.ended = run, None
                    self._save(state)
                os.truncate(lock, 0)
                os.pwrite(lock, f"process {os.getpid()}, run {run}".encode(), 0)
            except BaseException:
                os.close(lock)
                raise
            self._run_lock = lock
        except OSError as error:
            raise unwritable(self.path, error) from error

    def end(self, ok: bool, remove_if_empty: bool) -> None:
        """Once per run: leave whole rows only, remove what is not needed any more, give the lock back."""
        if self._run_lock is None:
            return  # `begin` has failed: whatever is there belongs to another run
        try:
            with self._locked():
                state = self._load() or _State()
                self._repair(state)
                state.ended = ok
                self._save(state)
                # after a failure a later run may go on, and commit what had been prepared
                self._remove_logs(state, all_of_them=ok)
                if remove_if_empty and not ok and self._empty(state):
                    os.unlink(self.path)
        except OSError as error:
            raise unwritable(self.path, error) from error
        finally:
            # explicitly: a child process may still hold a copy of the descriptor
            fcntl.flock(self._run_lock, fcntl.LOCK_UN)
            os.close(self._run_lock)
            self._run_lock = None

    def commit(self, log: str, end: int) -> None:
        """The first `end` bytes of this log are part of the visible file, once, however often this is called."""
        try:
            with self._locked():
                state = self._load() or _State(length=self._make_visible(0))
                done = state.copied.get(log, 0)
                if done >= end:
                    return
                self._repair(state)
                self._append(state, log, done, end)
                state.length += end - done
                state.copied[log] = end
                self._save(state)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def forget_logs(self) -> None:
        """Remove all logs: no process writes now, and nothing is to be committed any more."""
        try:
            with self._locked():
                state = self._load()
                if state is not None:
                    self._repair(state)
                    self._remove_logs(state, all_of_them=True)
                    # How far each was copied stays known: a commit that has been done may be asked for again. Not for ever:
                    # where each commit has logs of its own there would be ever more of them.
                    if len(state.copied) > 2 * _REMEMBERED:
                        state.copied = dict(list(state.copied.items())[-_REMEMBERED:])
                        self._save(state)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _append(self, state: _State, log: str, start: int, end: int) -> None:
        try:
            source = os.open(os.path.join(self.folder, log), os.O_RDONLY)
        except FileNotFoundError:
            raise SinkError(
                f"{self.path}: the rows to commit are gone: {log} is not in {self.folder}; on several hosts the folder "
                "must be one that all of them share"
            ) from None
        target = os.open(self.path, os.O_WRONLY)
        try:
            os.lseek(target, state.length, os.SEEK_SET)
            while start < end:
                piece = os.pread(source, min(_PIECE, end - start), start)
                if not piece:
                    raise SinkError(f"{self.path}: the rows to commit are gone: {log} in {self.folder} is cut short")
                write_fully(target, piece)
                start += len(piece)
            os.fsync(target)
        except BaseException:
            os.ftruncate(target, state.length)
            raise
        finally:
            os.close(target)
            os.close(source)

    def _start(self, mode: str) -> _State:
        """A run from its beginning: what earlier ones left counts as content, or goes, as `mode` says."""
        state = self._load()
        if mode == "error" and os.path.lexists(self.path) and not self._unused(state):
            raise self._exists()
        if mode == "append" and state is not None and state.ended is None and os.path.exists(self.path):
            self._repair(state, may_be_shorter=True)
        length = self._make_visible(0 if mode == "append" else os.O_TRUNC)
        self._remove_logs(_State(), all_of_them=True)
        return _State(length=length)

    def _unused(self, state: _State | None) -> bool:
        """Return whether the file is that of a run which was killed before it had committed anything."""
        return (
            state is not None and not state.ended and self._empty(state) and os.path.getsize(self.path) == state.length
        )

    def _empty(self, state: _State) -> bool:
        """Return whether there is no row in the file."""
        return state.length <= len(self._header)

    def _make_visible(self, flags: int) -> int:
        """There is a visible file, and it ends with a whole line; returns its length."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        try:
            length = os.fstat(fd).st_size
            if length and os.pread(fd, 1, length - 1) != b"\n":
                # a last line of other origin has no end: ours must not become a part of it
                length += os.pwrite(fd, b"\n", length)
            if not length:
                write_fully(fd, self._header)
                length = len(self._header)
            elif self._header:
                self._compare_header(fd)
            os.fsync(fd)
        finally:
            os.close(fd)
        sync_folder(os.path.dirname(self.path))
        return length

    def _compare_header(self, fd: int) -> None:
        there = os.pread(fd, _PIECE, 0).partition(b"\n")[0]
        if there.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r") != self._header.rstrip(b"\n"):
            raise SinkError(
                f"{self.path}: its first line is {there[:200]!r}, and that of this run would be {self._header.rstrip(chr(10).encode())!r}; "
                'write elsewhere, or say mode="replace" to start anew'
            )

    def _resume(self) -> _State:
        """A run that goes on: what the earlier one has committed stays, what it has prepared can still be committed."""
        state = self._load()
        if state is not None and self._empty(state) and not os.path.exists(self.path):
            state.length = self._make_visible(0)
        if state is None or not os.path.exists(self.path):
            raise SinkError(
                f"{self.path}: what the run that is to go on has written is gone; put {self.path} and {self.folder} "
                "back, or start anew (--restart)"
            )
        self._repair(state)
        return state

    def _repair(self, state: _State, may_be_shorter: bool = False) -> None:
        """Cut off what a commit that was not completed has left."""
        size = os.stat(self.path).st_size if os.path.exists(self.path) else -1
        if size == state.length or (may_be_shorter and size < state.length):
            return
        if size < state.length:
            raise SinkError(
                f"{self.path}: is shorter than what was written ({max(size, 0)} bytes of {state.length}): another "
                'program has changed or removed it; run again with mode="replace", or write elsewhere'
            )
        if not any(self._is_tail(state, log) for log in self._logs()):
            raise SinkError(
                f"{self.path}: holds {size - state.length} bytes behind byte {state.length} that no run has committed: "
                f"another program has written to it; look at them, then remove {self.folder} to keep them, or cut them "
                "off"
            )
        os.truncate(self.path, state.length)

    def _is_tail(self, state: _State, log: str) -> bool:
        """Return whether what stands behind the committed part is the start of what this log has still to copy."""
        with open(self.path, "rb") as visible, open(os.path.join(self.folder, log), "rb") as rows:
            visible.seek(state.length)
            rows.seek(state.copied.get(log, 0))
            while piece := visible.read(_PIECE):
                if rows.read(len(piece)) != piece:
                    return False
            return True

    def _logs(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.endswith(".log")]

    def _remove_logs(self, state: _State, all_of_them: bool) -> None:
        for log in self._logs():
            path = os.path.join(self.folder, log)
            if all_of_them or os.path.getsize(path) <= state.copied.get(log, 0):
                os.unlink(path)

    def _load(self) -> _State | None:
        try:
            with open(self._state_path, "rb") as file:
                return _State(**json.load(file))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise SinkError(
                f"{self._state_path}: is damaged ({error}); remove {self.folder} to take {self.path} as it is, or "
                "write elsewhere"
            ) from error

    def _save(self, state: _State) -> None:
        replace_file(self._state_path, json.dumps(asdict(state)).encode())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the state; waits for others, whose commits are short."""
        os.makedirs(self.folder, exist_ok=True)
        lock = os.open(self._lock_path("commit"), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _try_lock(self, lock: int, how: int) -> None:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 200, 0).decode(errors="replace") or "not known which"
            raise SinkError(
                f"{self.path}: another run, or another sink of this one, writes to it ({holder}); wait until it has "
                "ended, or write elsewhere"
            ) from None

    def _lock_path(self, name: str) -> str:
        return os.path.join(self.folder, name + ".lock")

    def _exists(self) -> SinkError:
        return SinkError(
            f'{self.path}: exists already; remove it, or say mode="append" to add to it, mode="replace" to start anew, '
            "or write elsewhere"
        )
