"""The state directory from a run's side: whether it may begin there, from what it goes on, and how it ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.object_store.object_path import ObjectPath
from esault.state.last_run import BEGUN, LastRun, continued, last_run, note_run
from esault.state.outputs import check_same_units, note_outputs
from esault.state.place import Place
from esault.state.savepoints import SAVEPOINTS
from esault.state.state_dir import StateDir
from esault.state.state_path import StatePath
from esault.topology.plan import Plan

__all__ = ["RunState", "check_tables"]

#: seconds that the processes of a run that was killed get to be gone
LET_GO_WITHIN = 3.0


def check_tables(plan: Plan, path: Place) -> None:
    """Check that a run which begins anew, though `--resume` was said, empties no table. Raises UsageError."""
    if (path / BEGUN).exists():
        return  # a run of this topology has emptied them already, and died before its first checkpoint
    for sink in plan.sinks:
        place = getattr(sink.sink, "path", None)
        if getattr(sink.sink, "mode", None) != "replace" or not isinstance(place, (str, os.PathLike)):
            continue
        there = Path(place)
        if (there.is_dir() and any(there.iterdir())) or (there.is_file() and there.stat().st_size):
            near = path.parent if isinstance(path, Path) else Path()
            others = (
                ", ".join(repr(each.name) for each in sorted(near.iterdir())) if path != near and near.is_dir() else ""
            )
            raise UsageError(
                f"--resume: there is no checkpoint of topology {plan.name!r} in {path}, and to begin anew would empty {there}, which sink "
                f"{sink.name!r} replaces. If the topology had another name, say --rename OLD-NAME={plan.name} or Topology({plan.name!r}, moved={{'old-name': {plan.name!r}}})"
                + (f" (state is kept of: {others})" if others and others != repr(path.name) else "")
                + "; if its state is elsewhere, name the place with --state; to empty the table, leave --resume out"
            )
    check_same_units(plan, path)


class RunState:
    """Holds the state directory from before a run to its end. `kept`: the checkpoint to go on from; None: begin anew."""

    def __init__(
        self,
        where: StatePath,
        resume: bool,
        restart: bool,
        notice: Callable[[str], None],
        savepoint: Place | None = None,
    ) -> None:
        """Changes nothing before `begin`. `savepoint`: the folder of one to begin with; with `resume` where there is nothing to be resumed.

        Raises UsageError where the run may not begin so, CheckpointError where nothing there can be used.
        """
        if resume and restart:
            raise UsageError("--resume goes on and --restart begins anew: say one of them")
        self._where = where
        self._notice = notice
        self.kept: CompletedCheckpoint | None = None
        #: there is no checkpoint, and a spool to begin with
        self._spooled = False
        #: identity of the state directory, known once the run begins
        self.lineage = ""
        #: the run that this one goes on with, and from which of its checkpoints, 0: from its beginning; None: it begins anew
        self.continues: tuple[str, int] | None = None
        #: where the savepoint lies that the run begins with, and its number here
        self._source: Place | None = None
        self._number = 0
        self._dir = _taken(where.lies)
        try:
            if savepoint is not None and not (resume and self._goes_on):
                self._choose_savepoint(savepoint, restart, notice)
            else:
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
                    self.continues = continued(last_run(path), None)
                    notice(f"no checkpoint in {path} yet: the run begins from the start")
            elif resume:
                notice(f"no checkpoint in {path} yet: the run begins from the start, with what its spouts have read")
                self.continues = continued(last_run(path), None)
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
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.completed_at))
        if not resume:
            raise UsageError(
                f"{path} holds a run that did not finish (checkpoint {kept.number}, {when}): go on with --resume, begin anew with "
                "--restart, or name another place with --state"
            )
        for text in amiss:
            notice(
                f"{text}: going on from checkpoint {kept.number} instead; rows that sinks committed after it will come once more"
            )
        if not amiss:
            notice(f"going on from checkpoint {kept.number} in {path}, {when}")
        self.continues = continued(last_run(path), (kept.run, kept.number))
        self.kept = replace(kept, repeats=kept.repeats or bool(amiss))

    @property
    def _goes_on(self) -> bool:
        """Return whether there is something that `--resume` goes on with."""
        return (bool(self._dir.manifests()) and not self._dir.ended) or self._dir.spooled

    @property
    def from_savepoint(self) -> bool:
        """Return whether the run begins with a savepoint."""
        return self._source is not None

    def _choose_savepoint(self, source: Place, restart: bool, notice: Callable[[str], None]) -> None:
        text = str(source)
        found, amiss = StateDir(source, locked=False).newest()
        if found is None:
            raise UsageError(f"--from-savepoint: {text} has no checkpoint")
        if found.over:
            raise UsageError(
                f"--from-savepoint: the run of {text} had come to its end: there is nothing to go on with. Its sources had ended, and "
                "finish() was called for all keys. A run that is to go on later has to be ended before its sources end: `esault stop "
                "--savepoint NAME`, with follow=True for files that grow"
            )
        for line in amiss:
            notice(f"{line}: taking checkpoint {found.number} instead")
        newest = None
        with contextlib.suppress(CheckpointError):  # none that is whole is in the way of nothing
            newest = self._dir.newest()[0]
        same = newest is not None and (newest.run, newest.units) == (found.run, found.units)
        if same and newest is not None:
            # What it was made of: with what its sinks have to commit, and all that its spouts have read since.
            source, found = self.path, newest
        elif not restart and (self._goes_on or self._dir.of_spark):
            which = f"checkpoint {newest.number}" if newest is not None else "without a checkpoint"
            raise UsageError(
                f"{self.path} holds a run that did not finish ({which}), and it is not where savepoint {text} was taken: go on with it by "
                "--resume, go back to the savepoint with --restart, or name another place with --state"
            )
        # in an object store a claim comes before it
        claims = isinstance(self.path, ObjectPath)
        self._number = max(self.last_number + claims, found.number) + 1
        incarnation = max([found.next_incarnation, *([newest.next_incarnation] if newest is not None else [])])
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found.completed_at))
        notice(
            f"going on from {text}: checkpoint {found.number} of {found.topology}, {when}; here it is checkpoint {self._number}"
        )
        origin = source.parent.parent if source.parent.name == SAVEPOINTS else source
        later = StateDir(origin, locked=False).last_number
        if later > found.number:
            notice(f"checkpoint {later} came after it: rows that sinks committed since come once more")
        self._source = source
        self.continues = continued(last_run(self.path) if same else None, (found.run, found.number))
        self.kept = replace(found, next_incarnation=incarnation)

    @property
    def source(self) -> Place:
        """The folder that the files of `kept` are in before `begin`."""
        return self.path if self._source is None else self._source

    @property
    def path(self) -> Place:
        """The folder, where it lies now."""
        return self._dir.path

    def begin(self, plan: Plan | None = None, run: str = "") -> None:
        """The run begins: what it does not go on from goes, and what is left has the names of today. `plan` says what its sinks write.

        `run`: its identity, which stays here for the run that goes on with it.

        Raises CheckpointError, UsageError.
        """
        self._dir.claim(self._number - 1)
        if self._source is not None and self.kept is not None:
            self.kept = self._dir.adopt(self._source, replace(self.kept, number=self._number))
        self._where.settle(self._dir, self._notice)
        self.lineage = self._dir.lineage()
        if self.kept is None and not self._spooled:
            self._dir.clear()
        else:
            self._dir.tidy()
        if plan is not None:
            note_outputs(plan, self.path)
        note_run(self.path, LastRun(run, self.continues) if run else None)

    @property
    def last_number(self) -> int:
        """Of the newest checkpoint that was ever complete here; later ones have higher numbers."""
        return self._dir.last_number

    def ended(self, in_order: bool) -> None:
        """All is committed; `in_order`: the sources have ended, too, so that there is nothing to go on with."""
        if in_order:
            self._dir.mark_ended()

    def savepoint(self, name: str) -> Place:
        """Keep the newest checkpoint under a name, once the run is over and all is committed; return where. Raises UsageError, CheckpointError."""
        kept, _ = self._dir.newest()
        if kept is None:
            raise UsageError(f"savepoint {name!r}: the run has ended before its first checkpoint")
        # One that ended before its sinks had begun has committed nothing of what it goes on from.
        before = None if self.kept is None else self.kept.number
        return self._dir.savepoints.create(kept, name, committed=kept.number != before)

    def check_savepoint(self, name: str) -> None:
        """Check that a savepoint of this name can be made. Raises UsageError."""
        self._dir.savepoints.check(name)

    def close(self) -> None:
        """Another run may have the directory, when the processes of this one are gone."""
        self._dir.close()


def _taken(path: Place) -> StateDir:
    """The processes of a run that was killed hold the lock until they are gone, about a second."""
    until = time.monotonic() + LET_GO_WITHIN
    while True:
        try:
            return StateDir(path)
        except UsageError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.05)
