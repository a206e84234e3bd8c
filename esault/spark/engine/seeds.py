"""Seeds: what the tasks of a unit had when a run ended, for tasks of another number.

A file for each task that had something: blocks with their lengths, first what is no state of a key, then the pieces as they were kept
(`task`). Each new task reads all of them and takes what is its own, by the rules of checkpoints of the actor engine.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from esault.errors import CheckpointError
from esault.flow.operators.operator import Operator
from esault.flow.worker.restore import StateRestore
from esault.messages.checkpoint import Piece, Restore
from esault.payload.codec import Codec
from esault.payload.schema import Schema
from esault.routing.ring import Name, canonical
from esault.routing.table import OutputTable
from esault.spark.engine.pieces import rows_of
from esault.spark.spark_path import SparkPlace, write_blocks
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["ADDED", "Seeds", "seed_folder", "write_seed"]

#: before the name of a folder that Spark brings to workers, from where they cannot read it themselves
ADDED = "added:"

_LENGTH = struct.Struct(">I")
#: what a file begins with: (names given, words of time)
Beside = tuple[int, Any]


def write_seed(folder: SparkPlace, unit: str, task: int, ordinal: int, words: bytes, pieces: Iterable[bytes]) -> None:
    """Keep what a task had, durable. Raises OSError."""
    blocks = itertools.chain([Codec().pack((ordinal, words))], pieces)
    write_blocks(folder / _name(unit, task), (_LENGTH.pack(len(block)) + block for block in blocks))


def _name(unit: str, task: int) -> str:
    return f"{quote(unit, safe='')}-{task}.seed"


def seed_folder(where: str) -> Path:
    """Return the folder of the seeds in a worker, as the job names it."""
    if not where.startswith(ADDED):
        return Path(where)
    from pyspark import SparkFiles

    return Path(SparkFiles.get(where.removeprefix(ADDED)))


class Seeds:
    """The states that tasks have left of a unit. It is a store of pieces of state, each the whole of one task. Raises CheckpointError."""

    def __init__(self, folder: Path, plan: UnitPlan, tasks: int) -> None:
        """`tasks`: how many there were."""
        self._folder, self._plan, self._tasks = folder, plan, tasks
        self._codec = Codec()
        #: when each key was used last
        self.used: dict[Name, float] = {}

    def beside(self) -> list[Beside]:
        """Return what is no state of a key, of each task that had anything."""
        found = []
        for task in range(self._tasks):
            block = next(self._blocks(task), None)
            if block is not None:
                ordinal, words = self._codec.unpack(block)
                found.append((ordinal, self._codec.unpack(words) if words else None))
        return found

    def into(
        self, operator: Operator, context: Context, task: int, tasks: int, new_operator: Callable[[], Operator]
    ) -> list[Operator]:
        """Fill the operator of a task, of so many; and return those for which there is no task any more."""
        place = Context(context.unit, sub_unit=task, part=task, parts=tasks)
        restore = Restore(
            0,
            chains=tuple((Piece(str(number), True, 0, 0, 0),) for number in range(self._tasks)),
            ranges=_ranges(task, tasks),
            written=tuple(_ranges(number, self._tasks) for number in range(self._tasks)),
        )
        return StateRestore(self._plan, place, restore, self).into(operator, new_operator)

    # a store of state, as `StateRestore` asks for it -----------------------------------------------

    def read(self, piece: Piece) -> Iterator[tuple[Any, bytes | None]]:
        """Keys and their states, the newest of a key last."""
        blocks = self._blocks(int(piece.name))
        next(blocks, None)
        for block in blocks:
            for key, state, used in rows_of(self._codec, block):
                self.used[canonical(key)] = used
                yield key, state

    def schema(self, piece: Piece) -> Schema | None:
        """The code is the same."""
        return {}

    def create(self, number: int, incarnation: int, base: bool, in_flight: bool = False) -> Any:
        """Nothing is written to it."""
        raise NotImplementedError

    def _blocks(self, task: int) -> Iterator[bytes]:
        path = self._folder / _name(self._plan.name, task)
        try:
            with path.open("rb") as file:
                while head := file.read(_LENGTH.size):
                    yield file.read(_LENGTH.unpack(head)[0])
        except FileNotFoundError:
            return  # it had nothing yet
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error


def _ranges(task: int, tasks: int) -> tuple[tuple[int, int], ...]:
    return tuple(OutputTable.even(list(range(tasks))).ranges(task))
