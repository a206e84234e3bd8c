"""Files that a run on Spark keeps from one life to the next, in its state directory.

```
DIR/lock               one run at a time, whatever its engine
DIR/spark/layout.json  where everything runs, and which generation of the query it is
DIR/spark/checkpoint/  Spark's own: offsets, state; those of later generations have a number
DIR/spark/seeds-N/     the state with which generation N begins, by the tasks that had it
DIR/spark/epochs/      the journal of sinks' commits
DIR/spark/spool/       what spouts that cannot seek have read
DIR/spark/ended        the run drained: there is nothing to go on with
```

Without `--checkpoint` the same lies in the run's own folder, and goes with it.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.spark.engine.journal import Journal
from esault.spark.engine.layout import Layout, lay_out
from esault.spark.engine.offsets import Offset, start
from esault.spark.engine.source_part import spools
from esault.spark.spark_path import SparkPath, SparkPlace, put, put_absent, remove_tree
from esault.state.run_state import check_tables
from esault.state.state_dir import LINEAGE, SPARK, StateDir
from esault.state.state_path import state_path
from esault.topology.plan import Plan

__all__ = ["Generation", "Kept", "open_kept"]

_CHECKPOINT, _SEEDS = "checkpoint", "seeds"


@dataclass(frozen=True)
class Generation:
    """A query of a run: it has a checkpoint of Spark's of its own, since Spark freezes the number of partitions there.

    A run that goes on with other tasks begins the next one, with the state of all tasks as `seeds`.
    """

    number: int
    layout: Layout
    #: parallelism that was asked for; it stays asked for
    chosen: Mapping[str, int]
    #: the epoch of its first batch
    first: int
    #: the offset before that batch
    offset: Offset
    #: unit -> tasks that have left a state for it
    seeds: Mapping[str, int] = field(default_factory=dict)


class Kept:
    """See the module. `generation`: the newest of the life before; None where this is the first life."""

    def __init__(
        self, path: SparkPlace, folder: SparkPlace, exactly: bool, generation: Generation | None, lineage: str = ""
    ) -> None:
        self.path = path
        self.folder = folder
        self.exactly = exactly
        self.before = self.generation = generation
        #: identity of the state directory; empty: there is none
        self.lineage = lineage
        #: the newest epoch that has a record; -1: none
        self.newest = Journal(folder / "epochs").newest() if generation is not None else -1
        self.resumed_from = self.newest + 1

    @property
    def resumed(self) -> bool:
        """Return whether the run goes on."""
        return self.before is not None

    def checkpoint_of(self, generation: Generation) -> SparkPlace:
        """Spark's own."""
        return self.folder / (f"{_CHECKPOINT}-{generation.number}" if generation.number else _CHECKPOINT)

    def seeds_of(self, number: int) -> SparkPlace:
        """The folder of the seeds with which this generation begins."""
        # a session knows one of a name that it brings to workers
        whose = f"-{self.lineage}" if isinstance(self.folder, SparkPath) else ""
        return self.folder / f"{_SEEDS}-{number}{whose}"

    def lay_out(self, plan: Plan, chosen: Mapping[str, int], cores: int) -> Layout:
        """Return the layout for so many cores. Raises UsageError where the run cannot go on as it is asked for."""
        before = self.before
        if before is None:
            layout = lay_out(plan, chosen, cores)
            self.generation = Generation(0, layout, dict(chosen), 0, start(dict(layout.parts)))
            return layout
        had = {**before.layout.parts, **before.layout.tasks}
        spouts = {name: had[name] for name in plan.units if name in before.layout.parts}
        layout = lay_out(plan, {**before.chosen, **chosen, **spouts}, cores)
        for what, old, new in (
            ("spouts", set(before.layout.parts), set(layout.parts)),
            ("units with state", set(before.layout.tasks), set(layout.tasks)),
        ):
            if old != new:
                said = [f"without {name!r}" for name in sorted(new - old)]
                said += [f"with {name!r}" for name in sorted(old - new)]
                raise UsageError(
                    f"the {what} of the run in {self.path} are others than the topology's ({', '.join(said)}), and Spark goes on with "
                    "the same alone: go on with the topology as it was, or begin anew with --restart"
                )
        for name, n in chosen.items():
            if n != spouts.get(name, n):
                raise UsageError(
                    f"spout {name!r} was read in {spouts[name]} parts in {self.path}, and their positions hold for that number only: leave "
                    f"--parallelism {name}={n} out, or begin anew with --restart"
                )
        asked = {**before.chosen, **chosen}
        if layout == before.layout:
            self.generation = replace(before, chosen=asked)
        else:
            none = self.newest < before.first  # no batch of it is over: its seeds are the state
            self.generation = Generation(
                before.number + 1,
                layout,
                asked,
                self.newest + 1,
                before.offset,
                before.seeds if none else dict(before.layout.tasks),
            )
        return layout

    @property
    def rescaled(self) -> bool:
        """Return whether the run goes on with other tasks than it had."""
        return self.before is not None and self.generation is not self.before and self._now.number != self.before.number

    @property
    def _now(self) -> Generation:
        assert self.generation is not None, "lay_out comes first"
        return self.generation

    @property
    def checkpoint(self) -> SparkPlace:
        """Spark's own, of this life's generation."""
        return self.checkpoint_of(self._now)

    def begins_with(self, offset: Offset) -> None:
        """The generation of this life begins behind this offset."""
        self.generation = replace(self._now, offset=offset)

    def begin(self, run: str) -> None:
        """The run begins, or goes on. Raises CheckpointError."""
        (self.folder / "ended").unlink(missing_ok=True)
        now = self._now
        said = {
            "run": run,
            "parts": dict(now.layout.parts),
            "tasks": dict(now.layout.tasks),
            "levels": now.layout.levels,
            "partitions": now.layout.partitions,
            "generation": now.number,
            "chosen": dict(now.chosen),
            "first": now.first,
            "offset": now.offset,
            "seeds": dict(now.seeds),
        }
        self._write("layout.json", json.dumps(said, indent=2).encode())
        self._forget()

    def _forget(self) -> None:
        """Checkpoints and seeds that no life goes back to."""
        now = self._now
        needed = {self.checkpoint.name, self.seeds_of(now.number).name}
        for pattern in (f"{_CHECKPOINT}*", f"{_SEEDS}-*"):
            for path in self.folder.glob(pattern):
                if path.name not in needed:
                    remove_tree(path, ignore_errors=True)

    def ended(self) -> None:
        """It drained."""
        self._write("ended", b"")

    def _write(self, name: str, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            put(self.folder / name, data)
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
    address: SparkPath | None = None,
) -> Iterator[Kept]:
    """Hold the state directory for the time of the block; `address`: where it is, if a file system of Spark has it. Raises UsageError, CheckpointError; changes nothing then."""
    if not exactly:
        for name, said in (("--state", state is not None), ("--resume", resume), ("--restart", restart)):
            if said:
                raise UsageError(f"{name} is about checkpoints: say how often with --checkpoint SECONDS")
        yield Kept(temporary, temporary / "state", False, None)
        return
    if resume and restart:
        raise UsageError("--resume goes on and --restart begins anew: say one of them")
    if address is not None:
        yield _kept_at(plan, address, resume, restart, notice)
        return
    where = state_path(plan, state)
    path = where.lies
    assert isinstance(path, Path), "an address is Spark's"
    held = StateDir(path)
    try:
        folder = path / SPARK
        if held.manifests() and not held.ended and not restart:
            raise UsageError(
                f"{path} holds a run of another engine that did not finish: go on with that engine, begin anew with --restart, or name "
                "another place with --state"
            )
        generation, over = _found(path, resume, restart)
        if generation is None and resume:
            check_tables(plan, path)
            notice(f"no checkpoint in {path} yet: the run begins from the start")
        where.settle(held, notice)
        assert isinstance(held.path, Path)
        path, folder = held.path, held.path / SPARK
        if generation is not None and (over or restart):
            shutil.rmtree(folder)
            generation = None
        if restart and held.manifests():
            held.clear()
        yield Kept(path, folder, True, generation, held.lineage())
    finally:
        held.close()


def _kept_at(plan: Plan, path: SparkPath, resume: bool, restart: bool, notice: Callable[[str], None]) -> Kept:
    """The same in a file system of Spark. There is no lock: of two runs one ends when it writes an epoch that is there."""
    for name, unit in plan.units.items():
        if spools(unit):
            raise UsageError(
                f"spout {name!r}: {type(unit.spout).__name__} cannot seek, so what it reads is kept row by row, in a file that grows, which "
                f"workers read: {path} has none. Name a folder with --state, on storage that all hosts share; or read from what can seek"
            )
    folder = path / SPARK
    try:
        generation, over = _found(path, resume, restart)
        if generation is None and resume:
            notice(f"no checkpoint in {path} yet: the run begins from the start")
        if generation is not None and (over or restart):
            remove_tree(folder)
            generation = None
        put_absent(path / LINEAGE, secrets.token_hex(16).encode())
        return Kept(path, folder, True, generation, (path / LINEAGE).read_text())
    except OSError as error:
        raise CheckpointError(f"state cannot be kept in {path}: {error}") from error


def _found(path: SparkPlace, resume: bool, restart: bool) -> tuple[Generation | None, bool]:
    """Return the newest generation in the place, and whether it has drained. Raises UsageError where the run cannot begin so."""
    generation = _generation(path / SPARK)
    over = (path / SPARK / "ended").exists()
    if generation is not None and over and resume:
        raise UsageError(f"the run in {path} has ended: there is nothing to go on with; leave --resume out")
    if generation is not None and not over and not resume and not restart:
        raise UsageError(
            f"{path} holds a run that did not finish: go on with --resume, begin anew with --restart, or name another place with "
            "--state"
        )
    return generation, over


def _generation(folder: SparkPlace) -> Generation | None:
    try:
        said = json.loads((folder / "layout.json").read_text())
        layout = Layout(
            said["parts"], said["tasks"], tuple(tuple(level) for level in said["levels"]), said["partitions"]
        )
        return Generation(
            said.get("generation", 0),
            layout,
            # 0.1 did not keep what was asked for: its tasks stay
            said.get("chosen", layout.tasks),
            said.get("first", 0),
            said.get("offset") or start(dict(layout.parts)),
            said.get("seeds", {}),
        )
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'layout.json'} is damaged: {error}; begin anew with --restart") from error
