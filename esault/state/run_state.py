"""What a run has to do with its state directory: whether it may begin there, from what it goes on, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from esault.errors import UsageError
from esault.messages.checkpoint import Kept
from esault.state.state_dir import StateDir

__all__ = ["RunState", "default_dir"]

#: seconds that the processes of a run that was killed get to be gone
LET_GO_WITHIN = 3.0


def default_dir(topology: str) -> Path:
    """Where a topology's state is kept unless another place is named."""
    return Path(".esault") / topology


class RunState:
    """Holds the state directory from before a run to its end. `kept`: the checkpoint to go on from; None: begin anew."""

    def __init__(self, path: Path, resume: bool, restart: bool, notice: Callable[[str], None]) -> None:
        """Changes nothing. Raises UsageError where the run may not begin so, CheckpointError where nothing there can be used."""
        if resume and restart:
            raise UsageError("--resume goes on and --restart begins anew: say one of them")
        self.path = path
        self.kept: Kept | None = None
        #: there is no checkpoint, and a spool to begin with
        self._spooled = False
        self._dir = _taken(path)
        try:
            self._choose(resume, restart, notice)
        except BaseException:
            self._dir.close()
            raise

    def _choose(self, resume: bool, restart: bool, notice: Callable[[str], None]) -> None:
        path = self.path
        if restart:
            return
        if self._dir.of_spark:
            raise UsageError(
                f"{path} holds a run of the Spark engine that did not finish: go on with --engine spark --resume, begin anew with "
                "--restart, or name another place with --state"
            )
        if not self._dir.manifests():
            if not self._dir.spooled:
                if resume:
                    notice(f"no checkpoint in {path} yet: the run begins from the start")
            elif resume:
                notice(f"no checkpoint in {path} yet: the run begins from the start, with what its spouts have read")
                self._spooled = True
            else:
                raise UsageError(
                    f"{path} holds a run that did not finish: it has no checkpoint yet, and what was read from sources that cannot "
                    "seek. Go on with --resume, begin anew with --restart, or name another place with --state"
                )
            return
        if self._dir.ended:
            if resume:
                raise UsageError(f"the run in {path} has ended: there is nothing to go on with; leave --resume out")
            return
        kept, amiss = self._dir.newest()
        assert kept is not None
        if not resume:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.completed_at))
            raise UsageError(
                f"{path} holds a run that did not finish (checkpoint {kept.number}, {when}): go on with --resume, begin anew with "
                "--restart, or name another place with --state"
            )
        for text in amiss:
            notice(
                f"{text}: going on from checkpoint {kept.number} instead; rows that sinks committed after it will come once more"
            )
        self.kept = kept

    def begin(self) -> None:
        """The run begins: what it does not go on from goes. Raises CheckpointError."""
        if self.kept is None and not self._spooled:
            self._dir.clear()
        else:
            self._dir.tidy()

    @property
    def last_number(self) -> int:
        """Of the newest checkpoint that was ever complete here; later ones have higher numbers."""
        return self._dir.last_number

    def ended(self, in_order: bool) -> None:
        """All is committed; `in_order`: the sources have ended, too, so that there is nothing to go on with."""
        if in_order:
            self._dir.mark_ended()

    def close(self) -> None:
        """Another run may have the directory, when the processes of this one are gone."""
        self._dir.close()


def _taken(path: Path) -> StateDir:
    """The processes of a run that was killed hold the lock until they are gone, about a second."""
    until = time.monotonic() + LET_GO_WITHIN
    while True:
        try:
            return StateDir(path)
        except UsageError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.05)
