"""Batches of Arrow as tuples: the columns that are wanted, of types that can travel, and one of them as the key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from esault.errors import SourceError, TopologyError
from esault.payload.arrow_type import arrow_reason
from esault.payload.blas_spin import short_spin
from esault.sources.record_key import as_key, described
from esault.topology.columns import Columns

__all__ = ["ArrowColumns", "ArrowShape", "arrow"]


def arrow(source: str) -> ModuleType:
    """Return pyarrow. Raises SourceError, naming `source`, where it is not installed."""
    try:
        with short_spin():
            import pyarrow
    except ImportError:
        raise SourceError(f"{source} reads with pyarrow: pip install 'esault[parquet]'") from None
    module: ModuleType = pyarrow
    return module


class ArrowColumns:
    """Choice of the columns that are read, and of the key. Raises TopologyError, naming `source`, for what cannot be."""

    def __init__(
        self, source: str, key: str | Callable[[dict[str, Any]], Any] | None, columns: Sequence[str] | None
    ) -> None:
        if key is not None and not isinstance(key, str) and not callable(key):
            raise TopologyError(f"{source}: key={key!r}: write the name of a column, or a function of the row")
        given: Any = columns
        named = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
        if given is not None and not (named and given and all(isinstance(name, str) for name in given)):
            raise TopologyError(f"{source}: columns={given!r}: write a list of names, or None for all columns")
        self.key = key
        self.names = None if given is None else list(dict.fromkeys(given))

    def of(self, name: str, schema: Any, unnamed: str | None) -> ArrowShape:
        """Return how batches of this schema become tuples. Raises SourceError, naming the file."""
        return ArrowShape(self, name, schema, unnamed)


class ArrowShape:
    """Tuples of batches of one schema. Raises SourceError, naming the file, for columns that are missing or cannot be."""

    def __init__(self, columns: ArrowColumns, name: str, schema: Any, unnamed: str | None) -> None:
        """`name` is the file, or what else the batches are of; `unnamed` the key of its tuples where no column is."""
        import pyarrow as pa

        self._name, self._key, self._unnamed = name, columns.key, unnamed
        there = list(schema.names)
        self._values = there if columns.names is None else columns.names
        #: what is to be read of each file
        self.read = list(self._values)
        if isinstance(self._key, str) and self._key not in self.read:
            self.read.append(self._key)
        #: column -> the type that it is made into, for those that cannot travel as they are
        self._casts: dict[str, Any] = {}
        for column in self.read:
            if there.count(column) != 1:
                known = ", ".join(map(repr, there)) or "none"
                raise SourceError(
                    f"{name}: there is no column {column!r}; there are {known}"
                    if column not in there
                    else f"{name}: two columns are named {column!r}; rename one"
                )
            kind = schema.field(column).type
            fit = _fitting(kind)
            if fit != kind:
                self._casts[column] = fit
            what = "keys" if column == self._key else "values"
            # `pa.array([], fit)` cannot make each of these: not categories of large strings, as Polars has them, up to Arrow 20
            empty = (
                fit.wrap_array(pa.nulls(0, fit.storage_type))
                if isinstance(fit, pa.BaseExtensionType)
                else pa.nulls(0, fit)
            )
            reason = arrow_reason(empty, what)
            if reason is not None:
                remedy = (
                    "name another column, or a function, with key="
                    if what == "keys"
                    else "leave it out with columns=[...]"
                )
                raise SourceError(f"{name}, column {column!r}: {reason.partition(': ')[2]}; or {remedy}")
        self._schema = pa.schema([(column, self._casts.get(column, schema.field(column).type)) for column in self.read])
        self._only = pa.schema([self._schema.field(column) for column in self._values])

    def tuples(self, batch: Any) -> Columns:
        """Return the tuples of a batch, which has the columns of `read`, in any order. Raises SourceError."""
        import pyarrow as pa

        found = {column: batch.column(batch.schema.get_field_index(column)) for column in self.read}
        for column, kind in self._casts.items():
            try:
                found[column] = found[column].cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SourceError(
                    f"{self._name}, column {column!r}: holds what {kind} cannot ({error}); leave it out with columns=[...]"
                ) from None
        values = pa.RecordBatch.from_arrays([found[column] for column in self._values], schema=self._only)
        key = self._key
        if key is None:
            return Columns([self._unnamed] * len(values), values)
        if isinstance(key, str):
            return Columns(found[key], values)
        whole = pa.RecordBatch.from_arrays([found[column] for column in self.read], schema=self._schema)
        rows = whole.to_pylist()
        keys = []
        for row in rows:
            try:
                keys.append(as_key(key(row)))
            except Exception as error:  # whatever the user's function raises about this row
                raise SourceError(f"{self._name}: the function key=, given {row!r}: {described(error)}") from error
        return Columns(keys, values)


def _fitting(kind: Any) -> Any:
    """Return the type nearest to this one whose items can travel; itself where they can, or where there is none."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if t.is_float16(kind):
        return pa.float32()
    if t.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _fitting(kind.value_type), kind.ordered)
    if t.is_struct(kind):
        return pa.struct([field.with_type(_fitting(field.type)) for field in map(kind.field, range(kind.num_fields))])
    if t.is_large_list(kind):
        return pa.large_list(_fitting(kind.value_type))
    if t.is_list(kind):
        return pa.list_(_fitting(kind.value_type))
    # of pyarrow 16 and newer
    if str(kind) == "string_view":
        return pa.large_string()
    if str(kind) == "binary_view":
        return pa.large_binary()
    return kind
