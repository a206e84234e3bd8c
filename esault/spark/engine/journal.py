"""The journal of epochs: what sinks said in `prepare`, durable before the first of them commits.

```
00000007.epoch      the record of epoch 7
done                the newest epoch that is committed whole
```

Spark may hand a batch over again: after a death between the record and Spark's own word that the batch is over. A batch that has a
record is not computed again, since its state is kept by then; it is committed again, which sinks take as often as it comes. A batch
without one is computed anew, and nothing of it was shown. So it does not matter whether user code does the same twice.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

from esault.errors import CheckpointError, FrameError
from esault.payload.codec import Codec
from esault.spark.spark_path import SparkPlace, put, put_absent

__all__ = ["Journal", "Record"]


class Record(NamedTuple):
    """The results of the batch of an epoch."""

    #: (sink, handle)
    handles: tuple[Any, ...]
    #: {unit: count}
    counts: tuple[Any, ...]
    #: (unit, part) -> (rows, position)
    ends: dict[Any, Any]
    #: whether the run ended with it
    ended: bool
    #: (path, dead letter)
    dead_letters: tuple[Any, ...] = ()
    #: frames of sinks that collect, in order
    collected: tuple[Any, ...] = ()


#: records that are kept behind the newest one that is done
_KEPT = 2


class Journal:
    """See the module. Raises CheckpointError."""

    def __init__(self, folder: SparkPlace) -> None:
        self._folder = folder
        self._codec = Codec()
        #: stands behind each record that this one writes: no two write the same bytes
        self._writer = secrets.token_hex(8)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    @property
    def done(self) -> int:
        """The newest epoch that is committed whole; -1: none."""
        try:
            return int((self._folder / "done").read_text())
        except FileNotFoundError:
            return -1

    def newest(self) -> int:
        """The newest epoch that has a record; -1: none."""
        return max((int(path.stem) for path in self._folder.glob("*.epoch")), default=-1)

    def over(self) -> bool:
        """Return whether the run ended with the newest epoch that has a record."""
        last = self.read(self.newest())
        return last is not None and last.ended

    def read(self, epoch: int) -> Record | None:
        """The record of an epoch; None where it has none."""
        path = self._path(epoch)
        try:
            record = Record(*self._codec.unpack(path.read_bytes())[: len(Record._fields)])
        except FileNotFoundError:
            return None
        except (FrameError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged: {error}; begin anew with --restart") from error
        return record

    def write(self, epoch: int, record: Record) -> None:
        """Durable when it returns. What another run has written stays: one of two that go on with the same state ends here."""
        path, data = self._path(epoch), self._codec.pack_value((*record, self._writer))
        try:
            # A store's client that gets no answer puts once more, and may be told of its own record that one is there.
            first = put_absent(path, data) or path.read_bytes() == data
        except OSError as error:
            raise self._failed(error) from error
        if not first:
            raise CheckpointError(
                f"another run has written epoch {epoch} in {self._folder}: it goes on, and this one ends"
            )

    def finish(self, epoch: int) -> None:
        """All sinks have committed it."""
        try:
            put(self._folder / "done", str(epoch).encode())
            for path in self._folder.glob("*.epoch"):
                if int(path.stem) <= epoch - _KEPT:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def _path(self, epoch: int) -> SparkPlace:
        return self._folder / f"{epoch:08d}.epoch"

    def _failed(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"epochs cannot be kept in {self._folder}: {error.strerror or error}; free space or mend permissions"
        )
