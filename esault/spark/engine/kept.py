"""Files that a run on Spark keeps from one life to the next, in its state directory.

```
DIR/lock               one run at a time, whatever its engine
DIR/spark/layout.json  where everything runs: Spark freezes the number of partitions with its checkpoint
DIR/spark/checkpoint/  Spark's own: offsets, state
DIR/spark/epochs/      the journal of sinks' commits
DIR/spark/spool/       what spouts that cannot seek have read
DIR/spark/ended        the run drained: there is nothing to go on with
```

Without `--checkpoint` the same lies in the run's own folder, and goes with it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.spark.engine.journal import Journal
from esault.spark.engine.layout import Layout, lay_out
from esault.state.files import write_whole
from esault.state.run_state import check_tables, state_path
from esault.state.state_dir import SPARK, StateDir
from esault.topology.plan import Plan

__all__ = ["Kept", "open_kept"]


class Kept:
    """See the module. `layout`: that of the life before; None where this is the first."""

    def __init__(self, path: Path, folder: Path, exactly: bool, layout: Layout | None, lineage: str = "") -> None:
        self.path = path
        self.folder = folder
        self.exactly = exactly
        self.layout = layout
        #: identity of the state directory; empty: there is none
        self.lineage = lineage
        self.resumed_from = Journal(folder / "epochs").newest() + 1 if layout is not None else 0

    @property
    def resumed(self) -> bool:
        """Return whether the run goes on."""
        return self.layout is not None

    @property
    def checkpoint(self) -> Path:
        """Spark's own."""
        return self.folder / "checkpoint"

    def lay_out(self, plan: Plan, chosen: Mapping[str, int], cores: int) -> Layout:
        """Return the layout, which stays. Raises UsageError where the run cannot go on as it is asked for."""
        if self.layout is None:
            return lay_out(plan, chosen, cores)
        had = {**self.layout.parts, **self.layout.tasks}
        now = lay_out(plan, had, cores)
        for what, before, after in (
            ("spouts", set(self.layout.parts), set(now.parts)),
            ("units with state", set(self.layout.tasks), set(now.tasks)),
        ):
            if before != after:
                said = [f"without {name!r}" for name in sorted(after - before)]
                said += [f"with {name!r}" for name in sorted(before - after)]
                raise UsageError(
                    f"the {what} of the run in {self.path} are others than the topology's ({', '.join(said)}), and Spark goes on with "
                    "the same alone: go on with the topology as it was, or begin anew with --restart"
                )
        if now.levels != self.layout.levels:
            raise UsageError(
                f"in the run in {self.path} units with state follow each other in another order, and Spark goes on with the same "
                "alone: go on with the topology as it was, or begin anew with --restart"
            )
        self._check_widths(chosen, had)
        return self.layout

    def _check_widths(self, chosen: Mapping[str, int], widths: Mapping[str, int]) -> None:
        for name, n in chosen.items():
            had = widths.get(name, n)
            if had != n:
                raise UsageError(
                    f"unit {name!r} has {had} tasks in {self.path}, and Spark cannot change that in a checkpoint: leave --parallelism "
                    f"{name}={n} out, or begin anew with --restart"
                )

    def begin(self, layout: Layout, run: str) -> None:
        """The run begins, or goes on. Raises CheckpointError."""
        (self.folder / "ended").unlink(missing_ok=True)
        said = {
            "run": run,
            "parts": dict(layout.parts),
            "tasks": dict(layout.tasks),
            "levels": layout.levels,
            "partitions": layout.partitions,
        }
        self._write("layout.json", json.dumps(said, indent=2).encode())

    def ended(self) -> None:
        """It drained."""
        self._write("ended", b"")

    def _write(self, name: str, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / name, data)
        except OSError as error:
            raise CheckpointError(
                f"{self.folder / name} cannot be written: {error.strerror or error}; free space or mend permissions"
            ) from error


@contextlib.contextmanager
def open_kept(
    plan: Plan,
    exactly: bool,
    state: str | Path | None,
    resume: bool,
    restart: bool,
    temporary: Path,
    notice: Callable[[str], None],
) -> Iterator[Kept]:
    """Hold the state directory for the time of the block. Raises UsageError, CheckpointError; changes nothing then."""
    if not exactly:
        for name, said in (("--state", state is not None), ("--resume", resume), ("--restart", restart)):
            if said:
                raise UsageError(f"{name} is about checkpoints: say how often with --checkpoint SECONDS")
        yield Kept(temporary, temporary / "state", False, None)
        return
    if resume and restart:
        raise UsageError("--resume goes on and --restart begins anew: say one of them")
    where = state_path(plan, state)
    path = where.lies
    held = StateDir(path)
    try:
        folder = path / SPARK
        if held.manifests() and not held.ended and not restart:
            raise UsageError(
                f"{path} holds a run of another engine that did not finish: go on with that engine, begin anew with --restart, or name "
                "another place with --state"
            )
        layout = _layout(folder)
        over = (folder / "ended").exists()
        if layout is not None and over and resume:
            raise UsageError(f"the run in {path} has ended: there is nothing to go on with; leave --resume out")
        if layout is not None and not over and not resume and not restart:
            raise UsageError(
                f"{path} holds a run that did not finish: go on with --resume, begin anew with --restart, or name another place with "
                "--state"
            )
        if layout is None and resume:
            check_tables(plan, path)
            notice(f"no checkpoint in {path} yet: the run begins from the start")
        where.settle(held, notice)
        path, folder = held.path, held.path / SPARK
        if layout is not None and (over or restart):
            shutil.rmtree(folder)
            layout = None
        if restart and held.manifests():
            held.clear()
        yield Kept(path, folder, True, layout, held.lineage())
    finally:
        held.close()


def _layout(folder: Path) -> Layout | None:
    try:
        said = json.loads((folder / "layout.json").read_text())
        return Layout(said["parts"], said["tasks"], tuple(tuple(level) for level in said["levels"]), said["partitions"])
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'layout.json'} is damaged: {error}; begin anew with --restart") from error
