"""A batch with arrays for columns, on its way from an emit to channels and sinks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from esault.flow.channel.channel import MAX_BATCH_ROWS
from esault.payload.column import PLAIN_TYPES, plain, take
from esault.payload.column_wire import wired
from esault.payload.loaded import loaded

__all__ = ["ArrayBatch", "Numbers"]

#: owner of a key, as the number of a channel
Owner = Callable[[Any], int]
#: integer keys below this are looked up in one array, NumPy permitting
DENSE = 1 << 16


class ArrayBatch:
    """Keys and values, at least one of which is an array; both have been checked."""

    def __init__(self, keys: Any, values: Any) -> None:
        self.keys = keys
        self.values = values

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def rows(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Keys and values as plain Python objects, made once for all who need them."""
        return plain(self.keys), plain(self.values)

    def wired(self, ids: Sequence[str] | None) -> Iterator[tuple[int, Any, Any, Sequence[str] | None]]:
        """(rows, keys, values, ids) of batches that can travel."""
        keys, values, rows = self.keys, self.values, len(self.keys)
        for start in range(0, rows, MAX_BATCH_ROWS):
            stop = min(rows, start + MAX_BATCH_ROWS)
            part = ids[start:stop] if ids is not None else None
            yield stop - start, wired(keys[start:stop]), wired(values[start:stop]), part

    def divided(
        self, numbers: Any, ids: Sequence[str] | None
    ) -> Iterator[tuple[int, ArrayBatch, Sequence[str] | None]]:
        """(number, its rows, their ids) by the number of each row: a list, or a NumPy array."""
        for number, places in _places(numbers):
            part = self if len(places) == len(self) else ArrayBatch(take(self.keys, places), take(self.values, places))
            yield number, part, ids if ids is None or part is self else take(ids, places)

    def picked(self, chosen: Sequence[int], ids: Sequence[str] | None) -> tuple[ArrayBatch, Sequence[str] | None]:
        """The rows at these places, with their ids."""
        places = array("q", chosen)
        return ArrayBatch(take(self.keys, places), take(self.values, places)), None if ids is None else take(
            ids, places
        )


def _places(numbers: Any) -> Iterator[tuple[int, Any]]:
    numpy = loaded("numpy")
    if numpy is None:
        places: dict[int, array[int]] = {}
        for i, number in enumerate(numbers):
            places.setdefault(number, array("q")).append(i)
        yield from places.items()
        return
    numbers = numpy.asarray(numbers)
    # Sorting small integers is counting, for NumPy; and rows of a channel stay in order.
    counts = numpy.bincount(numbers)
    if len(counts) <= 1 << 16:
        numbers = numbers.astype(numpy.uint16 if len(counts) > 256 else numpy.uint8)
    order = numpy.argsort(numbers, kind="stable").astype(numpy.int64, copy=False)
    start = 0
    for number, count in enumerate(counts.tolist()):
        if count:
            yield number, order[start : start + count]
            start += count


class Numbers:
    """The numbers of channels for whole columns of keys, by a cache of `owner` that is asked once for each different key."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._dense: Any = None

    def of(self, keys: Any) -> Any:
        """The number for each key, none of which is missing: a list, or a NumPy array."""
        if type(keys) in PLAIN_TYPES:
            return list(map(self._owner, keys))
        if hasattr(keys, "to_pylist"):
            return self._of_arrow(keys)
        if keys.dtype.kind in "US":  # sorting texts takes longer than looking them up
            return list(map(self._owner, keys.tolist()))
        if keys.dtype.kind != "b" and len(keys) and keys.min() >= 0 and keys.max() < DENSE:
            return self._of_dense(keys)
        return self._of_unique(keys)

    def _of_unique(self, keys: Any) -> Any:
        import numpy as np

        different, inverse = np.unique(keys, return_inverse=True)
        return np.fromiter(map(self._owner, different.tolist()), np.int64, len(different))[inverse]

    def _of_dense(self, keys: Any) -> Any:
        import numpy as np

        dense = self._dense
        if dense is None:
            dense = self._dense = np.full(DENSE, -1, np.int32)
        keys = keys.astype(np.intp, copy=False)
        numbers = dense[keys]
        if numbers.min() < 0:
            new = np.unique(keys[numbers < 0])
            dense[new] = np.fromiter(map(self._owner, new.tolist()), np.int32, len(new))
            numbers = dense[keys]
        return numbers

    def _of_arrow(self, keys: Any) -> Any:
        import pyarrow as pa

        if hasattr(keys, "dictionary"):  # what it holds beside the keys that occur may be none
            keys = keys.dictionary_decode()
        numpy = loaded("numpy")
        if numpy is not None and pa.types.is_integer(keys.type):
            return self.of(_integers(keys))
        encoded = keys.dictionary_encode()
        numbers = list(map(self._owner, encoded.dictionary.to_pylist()))
        if numpy is None:
            return [numbers[i] for i in encoded.indices.to_pylist()]
        return numpy.array(numbers, numpy.int64)[_integers(encoded.indices)]


def _integers(items: Any) -> Any:
    """Arrow's integers, none of which is null, as NumPy's; not by `to_numpy`, which loads pandas wherever that is installed."""
    import numpy as np
    import pyarrow as pa

    size = items.type.bit_width // 8
    kind = np.dtype(f"{'i' if pa.types.is_signed_integer(items.type) else 'u'}{size}")
    return np.frombuffer(items.buffers()[1], kind, len(items), items.offset * size)
