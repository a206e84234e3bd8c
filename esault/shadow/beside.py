"""A shadow beside a run: begun before it, told of its end, and compared with it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from esault.counters import counted
from esault.errors import UsageError
from esault.runtime.session.open_state import open_state
from esault.runtime.session.request import Request
from esault.shadow.comparison import Comparison, compare
from esault.shadow.folder import ShadowFolder
from esault.shadow.versions import FirstVersion, described
from esault.topology.located import Located
from esault.topology.rewired import sinks_of

__all__ = ["Beside", "Outcome"]

#: seconds between two looks at the shadow's process, and lines of its log that are shown where it failed
LOOK, TAIL = 0.05, 20


class Beside:
    """The shadow of one run, in a process of its own."""

    def __init__(self, first: Located, params: Mapping[str, Any], shadow: str, how: Mapping[str, Any]) -> None:
        """`shadow` names the other version as on the command line; `how` says how it runs. Raises UsageError."""
        topology = first.build(params)
        self.folder = ShadowFolder(Path(".esault") / "shadow" / topology.name)
        self._sinks = sinks_of(topology)
        self.folder.begin({"first": described(topology), "shadow": shadow, **how})
        #: the first version, as it is to be run
        self.first = FirstVersion(**vars(first), shadow_folder=str(self.folder.path))
        self._process: subprocess.Popen[bytes] | None = None

    def _go_on_as(self, request: Request) -> None:
        """Have the shadow begin with what the run of `request` goes on from, if it does. Raises UsageError, CheckpointError."""
        if not request.resume and request.from_savepoint is None:
            return
        # the run says itself what there is to be said of its state
        state = open_state(request, self.first.build(request.params).plan(), lambda text: None)
        if state is None:
            return
        try:
            if state.kept is not None:
                self.folder.keep_savepoint(state.kept, state.source)
        finally:
            state.close()

    def paused(self) -> None:
        """Note that the first version was paused, while it still counts as running: its shadow is to be paused, too."""
        self.folder.paused.touch()

    @contextlib.contextmanager
    def running(self, request: Request) -> Iterator[None]:
        """Begin the shadow of this run; it is ended at once where the run fails. Raises UsageError where it cannot begin, CheckpointError."""
        self._go_on_as(request)
        with open(self.folder.log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "esault.shadow", str(self.folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the first version: its shadow reads what that has read
            )
        try:
            while not self.folder.begun.exists():
                if self._process.poll() is not None:
                    said = self._said().rpartition("error: ")[2]
                    raise UsageError(f"--shadow: {said or 'it ended, and left no word'}")
                time.sleep(LOOK)
            yield
        except BaseException:
            self._process.terminate()
            self._process.wait()
            raise
        finally:
            self.folder.end_of_rows()

    def outcome(self) -> Outcome:
        """Wait until the shadow has read all, and compare; Ctrl-C ends it."""
        assert self._process is not None
        try:
            if self.folder.paused.exists():
                while not self.folder.all_read and self._process.poll() is None:
                    time.sleep(LOOK)
                self._process.terminate()
            code = self._process.wait()
        except BaseException:
            self._process.terminate()
            self._process.wait()
            raise
        made = Outcome(self.folder, self._said() if code else "")
        for sink in self._sinks:
            made.sinks[sink] = compare(self.folder.rows("first", sink), self.folder.rows("shadow", sink))
        known = {Path(self.folder.rows("first", sink)).name for sink in self._sinks}
        found = {path.name for path in (self.folder.path / "shadow").glob("*.jsonl")}
        made.more = sorted(name.removesuffix(".jsonl") for name in found - known)
        self.folder.forget_read()
        return made

    def _said(self) -> str:
        lines = self.folder.log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
        return "\n".join(lines[-TAIL:])


class Outcome:
    """The comparison of all sinks; as a text it is what people read."""

    def __init__(self, folder: ShadowFolder, failed: str) -> None:
        self._folder = folder
        #: the last words of a shadow that failed; empty else
        self.failed = failed
        self.sinks: dict[str, Comparison] = {}
        #: sinks that only the shadow has
        self.more: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Return whether the shadow ran to its end, and put out what the first version did."""
        return not self.failed and all(each.same for each in self.sinks.values())

    def __str__(self) -> str:
        lines = [f"the shadow failed; its last words:\n{self.failed}"] if self.failed else []
        for name, each in self.sinks.items():
            if each.same:
                lines.append(f"{name}: the same {counted(each.first, 'row')}")
                continue
            lines.append(
                f"{name}: {counted(each.rows, 'row')} of {counted(each.keys, 'key')} differ; "
                f"{each.first:,} in the first version, {each.shadow:,} in the shadow"
            )
            for first, shadow in each.shown.values():
                lines += [f"  - {row}" for row in first[:_ROWS]] + [f"  + {row}" for row in shadow[:_ROWS]]
            if len(each.shown) < each.keys:
                lines.append(f"  ... and {counted(each.keys - len(each.shown), 'key')} more")
        lines += [f"{name}: only the shadow has it" for name in self.more]
        lines.append(f"  rows of both: {self._folder.path}")
        return "\n".join(lines)


#: rows of one key and one version that are shown
_ROWS = 3
