"""The state directory from a run's side: whether it may begin there, from what it goes on, and how it ended."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.state.spool import rename_spools
from esault.state.state_dir import StateDir
from esault.topology.plan import Plan

__all__ = ["RunState", "StatePath", "check_tables", "default_dir", "state_path"]

#: seconds that the processes of a run that was killed get to be gone
LET_GO_WITHIN = 3.0
#: in the state directory: a run has begun here, and its sinks with it
BEGUN = "begun"


def default_dir(topology: str) -> Path:
    """Return the folder of a topology's state unless another place is named."""
    return Path(".esault") / topology


@dataclass(frozen=True)
class StatePath:
    """The folder of a run's state: where it lies, and where it belongs by the names of today."""

    lies: Path
    belongs: Path
    #: old name -> what it is now
    moved: Mapping[str, str] = field(default_factory=dict)

    def settle(self, held: StateDir, notice: Callable[[str], None]) -> None:
        """Give the folder, which is held, and the spools in it the names of today. Raises UsageError.

        Only when the run begins: one that is refused leaves all as it was, for the code that wrote it.
        """
        if self.lies != self.belongs:
            try:
                shutil.rmtree(self.belongs, ignore_errors=True)
                self.lies.rename(self.belongs)
            except OSError as error:
                raise UsageError(
                    f"{self.lies} cannot be renamed to {self.belongs}: {error.strerror or error}"
                ) from error
            held.path = self.belongs
            notice(f"{self.lies} is {self.belongs} now, since topology {self.lies.name!r} is {self.belongs.name!r}")
        rename_spools(held.path, self.moved)


def state_path(plan: Plan, given: str | Path | None) -> StatePath:
    """Return the folder of this run's state: as given, or by the topology's name, or by the name that it had."""
    moved = {old: new for old, new in plan.moved.items() if isinstance(new, str)}
    if given is not None:
        return StatePath(Path(given), Path(given), moved)
    path = default_dir(plan.name)
    if _is_empty(path):
        for before in [default_dir(old) for old, new in moved.items() if new == plan.name]:
            if before.is_dir():
                return StatePath(before, path, moved)
    return StatePath(path, path, moved)


def _is_empty(path: Path) -> bool:
    return not path.exists() or {each.name for each in path.iterdir()} <= {"lock"}


def check_tables(plan: Plan, path: Path) -> None:
    """Check that a run which begins anew, though `--resume` was said, empties no table. Raises UsageError."""
    if (path / BEGUN).exists():
        return  # a run of this topology has emptied them already, and died before its first checkpoint
    for sink in plan.sinks:
        place = getattr(sink.sink, "path", None)
        if getattr(sink.sink, "mode", None) != "replace" or not isinstance(place, (str, os.PathLike)):
            continue
        there = Path(place)
        if (there.is_dir() and any(there.iterdir())) or (there.is_file() and there.stat().st_size):
            others = (
                ", ".join(repr(each.name) for each in sorted(path.parent.iterdir())) if path.parent.is_dir() else ""
            )
            raise UsageError(
                f"--resume: there is no checkpoint of topology {plan.name!r} in {path}, and to begin anew would empty {there}, which sink "
                f"{sink.name!r} replaces. If the topology had another name, say Topology({plan.name!r}, moved={{'old-name': {plan.name!r}}})"
                + (f" (state is kept of: {others})" if others and others != repr(path.name) else "")
                + "; if its state is elsewhere, name the place with --state; to empty the table, leave --resume out"
            )


class RunState:
    """Holds the state directory from before a run to its end. `kept`: the checkpoint to go on from; None: begin anew."""

    def __init__(self, where: StatePath, resume: bool, restart: bool, notice: Callable[[str], None]) -> None:
        """Changes nothing before `begin`. Raises UsageError where the run may not begin so, CheckpointError where nothing there can be used."""
        if resume and restart:
            raise UsageError("--resume goes on and --restart begins anew: say one of them")
        self._where = where
        self._notice = notice
        self.kept: CompletedCheckpoint | None = None
        #: there is no checkpoint, and a spool to begin with
        self._spooled = False
        #: identity of the state directory, known once the run begins
        self.lineage = ""
        self._dir = _taken(where.lies)
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
        self.kept = replace(kept, repeats=kept.repeats or bool(amiss))

    @property
    def path(self) -> Path:
        """The folder, where it lies now."""
        return self._dir.path

    def begin(self) -> None:
        """The run begins: what it does not go on from goes, and what is left has the names of today.

        Raises CheckpointError, UsageError.
        """
        self._where.settle(self._dir, self._notice)
        self.lineage = self._dir.lineage()
        if self.kept is None and not self._spooled:
            self._dir.clear()
            (self.path / BEGUN).touch()
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
