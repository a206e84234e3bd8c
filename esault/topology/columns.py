"""Columns: many tuples as their keys and their values."""

from __future__ import annotations

from collections.abc import KeysView, Sequence, ValuesView
from typing import Any, Protocol

__all__ = ["Array", "Columns"]


class _NumpyArray(Protocol):
    """The features that tell a NumPy array from a list."""

    @property
    def dtype(self) -> Any: ...

    def __len__(self) -> int: ...


class _ArrowArray(Protocol):
    """The features that tell a pyarrow Array or RecordBatch from a list."""

    def to_pylist(self) -> list[Any]: ...

    def __len__(self) -> int: ...


Array = _NumpyArray | _ArrowArray


class Columns:
    """Columns that `Spout.read` may return in place of pairs: a column of keys, or None, and one of values of the same length.

    Columns are as `BatchBolt.emit_columns` takes them: sequences, views of a dict, NumPy arrays with one dimension, pyarrow Arrays, a
    RecordBatch for values. Arrays must not be changed any more: what a root holds is sent again where it must be.
    `len` says how many tuples there are.
    """

    __slots__ = ("keys", "values")

    def __init__(
        self,
        keys: Sequence[Any] | KeysView[Any] | ValuesView[Any] | Array | None,
        values: Sequence[Any] | KeysView[Any] | ValuesView[Any] | Array,
    ) -> None:
        self.keys = keys
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Columns of {len(self)} tuples>"
