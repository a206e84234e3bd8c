"""Sinks: where results land."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

from esault.topology.context import Context
from esault.value_class import value_class

__all__ = ["Row", "RunInfo", "Sink"]


class Row(NamedTuple):
    """One tuple as a sink sees it."""

    key: Any
    value: Any
    #: when the tuple it descends from was due at its spout, seconds since the epoch
    time: float
    #: names the tuple by its source row and the path of emits; None unless the sink `wants_id`
    id: str | None = None


class _Plain(tuple[Any, ...]):
    __slots__ = ()


class _MadeRow(_Plain, Row):
    """A `Row` that is made without its `__new__`, which is Python and takes as long as all else: for rows that the engine makes."""

    __slots__ = ()
    # Of `_Plain` it has the one in C, where that of Row would be called.
    __new__ = tuple.__new__  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Row, tuple(self)


_MadeRow.__name__ = _MadeRow.__qualname__ = "Row"  # as it shows itself


@value_class(frozen=True)
class RunInfo:
    """The facts that a sink is told once per run, before the first tuple."""

    #: identity of the run, unique over all runs
    run: str
    #: name of the topology
    topology: str
    #: name of the sink's unit
    unit: str
    #: True when the run goes on from an earlier one's checkpoint
    resumed: bool = False
    #: identity of the state folder (`--state`), the same in all runs over it, with `--resume` and `--restart`; without checkpoints `run`
    lineage: str = ""
    #: True with `resumed` when that checkpoint was a savepoint: other rows may stand in the sink than did then, or none
    from_savepoint: bool = False


class Sink:
    """Takes rows in the process of the unit before it. Subclasses write `write`.

    Order of calls. Once per run, in the driver's process: `check()` before anything starts, `begin(run)`
    just before the first tuple, then `commit` of what the checkpoint holds that the run goes on from, and
    `forget_staged(kept)`; `end(ok)` when all is over. In each sub-unit's process: `open(context)`, which may come
    before `begin`, then rounds of `write`... `prepare(epoch)` `commit(epoch, handle)`, then `close()`.
    At least once: a round every 50 ms or 10 000 rows. With checkpoints: a round per checkpoint,
    and `commit` may come again, also in another process and on another object, each time all go back; then `forget_staged`.
    A sink that defines `commit_all` commits in one place: with checkpoints it is called in the driver's process in place of `commit`.

    Every hook but `check`, `write_columns` and those that only answer may be an `async def`, or return a `concurrent.futures.Future`.
    `write`: no more rows are handed over until it is done. `prepare` and `commit`: the sub-unit goes on meanwhile, and the checkpoint
    waits for the handle. While a coroutine of the sink runs no other hook of it is called; while a Future of `prepare` or
    `commit` is open rows of the next epoch are written.
    """

    def __class_getitem__(cls, types: Any) -> Any:
        above = getattr(super(), "__class_getitem__", None)
        if above is not None:  # a sink that is generic by itself
            return above(types)
        raise TypeError(
            f"{cls.__name__} takes no types in brackets, as Spout[K, V] and Bolt[...] do: write `class Mine({cls.__name__})`, and say the "
            "types of rows where `write(self, rows)` reads them"
        )

    #: True asks for `Row.id`, which costs every unit before this sink some work per tuple
    wants_id: ClassVar[bool] = False

    #: True says that `write_columns` takes NumPy and Arrow arrays where a unit emits them; else it gets lists
    takes_arrays: ClassVar[bool] = False

    #: True says that what `path` names is written by this sink alone; `esault check` refuses a second one there
    owns_path: ClassVar[bool] = False

    #: True says that the rows come back to the command that started the run: `collected_rows` gives them to its report. They stay
    #: on its machine, so a run on several hosts refuses such a sink
    collects: ClassVar[bool] = False

    #: True says that its sub-units reach the driver's object by this machine alone: a run on several hosts refuses it
    on_one_host: ClassVar[bool] = False

    #: False says that each host writes `written_paths` to a disk of its own; else all hosts of a run must see the same there
    shares_paths: ClassVar[bool] = True

    #: set by the engine before `open`
    context: Context
    #: set by the engine before `end`: whether rows may have come more than once, with the same ids
    repeated: bool = True

    def check(self) -> None:
        """Called once before anything starts; raises SinkError when the sink cannot be used."""

    def begin(self, run: RunInfo, /) -> Any:
        """Called once per run, in the driver's process, before the first tuple; may take a lock."""

    def end(self, ok: bool, /) -> Any:
        """Called once per run, in the driver's process, when everything is over."""

    def open(self, context: Context, /) -> Any:
        """Open files and connections, in the process that writes."""

    def write(self, rows: Sequence[Row], /) -> Any:
        """Take rows. They need not be durable before `prepare`."""
        raise NotImplementedError(f"{type(self).__name__} must define write(rows)")

    def write_columns(
        self,
        keys: Any,
        values: Any,
        time: float,
        ids: Sequence[str] | None,
    ) -> Any:
        """Take rows as columns, tuples or lists; `time` is that of all of them. A faster `write`, for those who define it.

        Where the class says `takes_arrays`, columns may also be NumPy arrays, pyarrow Arrays and, for values, RecordBatches.
        """
        made: Any = _MadeRow
        return self.write(list(map(made, zip(keys, values, repeat(time), repeat(None) if ids is None else ids))))

    def prepare(self, epoch: int, /) -> Any:
        """All rows written so far are durable, and not yet visible; the handle is any value that can travel."""
        return None

    def commit(self, epoch: int, handle: Any, /) -> Any:
        """Make the rows of `prepare(epoch)` visible. May come again: then it changes nothing."""

    def commit_all(self, epoch: int, handles: Sequence[Any], /) -> Any:
        """Make the rows of a whole checkpoint visible at once: `handles` are those of all sub-units, each once.

        Called in the driver's process, once for each checkpoint, and no other checkpoint begins before it is done. May come again with the
        same handles, also in a later run: then it changes nothing. Without checkpoints `commit` is called.
        """

    def forget_staged(self, kept: Sequence[Any] = (), /) -> Any:
        """All that this run, or one before it of the same lineage, has prepared is committed by now, or never will be.

        `kept` are the handles that belong to the checkpoint that the run goes on from: they have been committed just now. Called in the
        driver's process behind `begin`, and each time all have gone back, before any process writes; sub-units may be open. A place to remove
        files and to abort transactions. One that is written without `kept` is called where a run goes on or all went back.
        """

    def close(self) -> Any:
        """The object leaves this process; not called in a crash."""

    def written_paths(self) -> Sequence[str | os.PathLike[str]]:
        """Return the files and folders that this sink writes: `path`, where there is one. May be asked before `open`."""
        path = getattr(self, "path", None)
        return () if path is None else (path,)

    def destination(self) -> str:
        """Return where rows go, for people, without passwords: the paths that it writes, unless it says more. May be asked before `open`."""
        return ", ".join(map(str, self.written_paths()))

    def collected_rows(self, run_dir: str, name: str) -> list[Any]:
        """Return the committed rows of the sink `name`, once the run is over; asked in the command's process where the class `collects`.

        `run_dir` is the run's own folder, `context.run_dir` of the objects that wrote.
        """
        return []


def forgets_always(sink: Sink) -> bool:
    """Return whether `forget_staged` takes the handles that are kept: earlier versions called it without, and less often."""
    try:
        inspect.signature(sink.forget_staged).bind(())
    except TypeError:
        return False
    except ValueError:  # it does not tell
        pass
    return True


def commits(sink: Sink) -> bool:
    """Return whether rows of this sink are durable only after `prepare` and `commit`."""
    cls = type(sink)
    return cls.prepare is not Sink.prepare or cls.commit is not Sink.commit or commits_as_one(sink)


def commits_as_one(sink: Sink) -> bool:
    """Return whether this sink commits a checkpoint for the whole run, in one place."""
    return type(sink).commit_all is not Sink.commit_all
