"""The tables that a topology file declares. Names are those of Lakeflow and of `pyspark.pipelines`; no Spark in here.

```python
def pipeline(tables):
    @tables.table(expect_all_or_quarantine={"some pieces": "pieces > 0"})
    def sold(sales):  # `sales` is a landed table: its rows that are new
        return sales.select("shop", "pieces")

    @tables.materialized_view(partition_cols=["shop"])
    def by_shop(sold):  # all rows
        return sold.groupBy("shop").sum("pieces").toDF("shop", "pieces")
```
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esault.errors import UsageError
from esault.spark.tables.code import code_mark

__all__ = ["ACTIONS", "Declared", "Tables"]

#: what becomes of a row that an expectation does not hold for
ACTIONS = ("warn", "drop", "quarantine", "fail")
_AGGREGATES = ("sum", "min", "max")
#: members that change no row
_OUTSIDE = ("function", "comment", "format", "retention")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Function = Callable[..., Any]


@dataclass(frozen=True)
class Declared:
    """One declared table or view; see `Tables` for what its members mean."""

    name: str
    kind: str
    function: Function
    #: parameter -> the table that it is
    reads: Mapping[str, str]
    #: those of the tables whose new rows alone are read
    stream: tuple[str, ...] = ()
    comment: str = ""
    #: expectation -> (action, condition)
    expectations: Mapping[str, tuple[str, str]] | None = None
    keys: tuple[str, ...] = ()
    sequence_by: str | None = None
    apply_as_deletes: str | None = None
    except_column_list: tuple[str, ...] = ()
    scd_type: int = 1
    merge: Mapping[str, str] | None = None
    partition_cols: tuple[str, ...] = ()
    schema: str | None = None
    on_schema_change: str = "append_new_columns"
    format: str = "parquet"
    retention: float = 86400.0

    @property
    def stored(self) -> bool:
        """Return whether it has rows of its own."""
        return self.kind != "temporary_view"

    @property
    def rules(self) -> str:
        """A mark that changes when the table's code or options do."""
        said = {n: getattr(self, n) for n in self.__dataclass_fields__ if n not in _OUTSIDE}
        return code_mark(self.function, repr(sorted(said.items(), key=lambda one: one[0])))


class Tables:
    """The registry that `pipeline(tables)` gets. `sources`: names of the landed tables.

    A function's parameters name what it reads: landed tables (each row once; characters that no Python name has are
    written `_`) and tables that are declared, before or after it.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self.sources = tuple(sources)
        self.declared: dict[str, Declared] = {}

    def table(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        comment: str = "",
        stream: str | Sequence[str] | None = None,
        keys: Sequence[str] = (),
        sequence_by: str | None = None,
        apply_as_deletes: str | None = None,
        except_column_list: Sequence[str] = (),
        stored_as_scd_type: int | str = 1,
        merge: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """Declare a streaming table: what the function makes of rows that are new comes to those that are there.

        `stream`: the parameters of which the new rows are given, by default the first; others are given whole.
        `keys` with `sequence_by` (a column): upserts, of each key the row with the greatest. `apply_as_deletes`: in
        SQL, which rows say that their key is gone. `except_column_list`: columns that are not stored. With
        `stored_as_scd_type=2` all versions of a row are kept, from `__START_AT` to `__END_AT`. `keys` with `merge`
        (column -> "sum", "min" or "max"): totals, into which those of the new rows are merged.
        `options` are those of `materialized_view`. UsageError for what cannot be.
        """

        def declare(made: Function) -> Function:
            named, reads = self._reads(made, name)
            streams = list(reads)[:1] if stream is None else [stream] if isinstance(stream, str) else list(stream)
            for one in streams:
                if one not in reads:
                    raise UsageError(f"table {named}: stream names {one!r}, which is no parameter of its function")
            if not streams:
                raise UsageError(f"table {named}: its function must read a table: def {named}(sales): ...")
            if bool(keys) != bool(sequence_by or merge) or (sequence_by and merge):
                raise UsageError(
                    f"table {named}: keys goes with sequence_by (upserts) or with merge (totals), one of them"
                )
            if str(stored_as_scd_type) not in ("1", "2"):
                raise UsageError(f"table {named}: stored_as_scd_type is 1 or 2, not {stored_as_scd_type!r}")
            if not sequence_by and (apply_as_deletes or except_column_list or str(stored_as_scd_type) == "2"):
                raise UsageError(
                    f"table {named}: apply_as_deletes, except_column_list and stored_as_scd_type need keys and sequence_by"
                )
            for column, how in (merge or {}).items():
                if column in keys:
                    raise UsageError(
                        f"table {named}: {column!r} is one of keys, so it is not merged; leave it out of merge"
                    )
                if how not in _AGGREGATES:
                    raise UsageError(
                        f"table {named}: merge of {column!r} is one of {', '.join(_AGGREGATES)}, not {how!r}; a mean is "
                        "a sum over a count"
                    )
            return self._declare(
                named,
                "table",
                made,
                reads,
                options,
                stream=tuple(dict.fromkeys(reads[one] for one in streams)),
                comment=comment,
                keys=_names(named, "keys", keys),
                sequence_by=sequence_by,
                apply_as_deletes=apply_as_deletes,
                except_column_list=_names(named, "except_column_list", except_column_list),
                scd_type=int(stored_as_scd_type),
                merge=None if merge is None else dict(merge),
            )

        return declare if function is None else declare(function)

    def materialized_view(
        self, function: Function | None = None, *, name: str | None = None, comment: str = "", **options: Any
    ) -> Any:
        """Declare a table that is made of whole tables, anew when one of them has changed.

        `expect_all`, `expect_all_or_drop`, `expect_all_or_quarantine`, `expect_all_or_fail`: conditions in SQL by name;
        a row for which one is not true is counted, dropped, put into a table of its own, or fails the run.
        `partition_cols`: columns whose values are folders. `schema`: the contract, such as "shop string, n bigint": other
        columns or types are an error. `on_schema_change`: "append_new_columns", or "fail". `format`: "delta" writes a
        log of Delta Lake, too. `retention`: seconds for which files that were replaced stay, for readers and for
        `version=`; a day, and a minute at least. UsageError for what cannot be.
        """

        def declare(made: Function) -> Function:
            named, reads = self._reads(made, name)
            return self._declare(named, "materialized_view", made, reads, options, comment=comment)

        return declare if function is None else declare(function)

    def temporary_view(self, function: Function | None = None, *, name: str | None = None, comment: str = "") -> Any:
        """Declare a view: its function runs within the tables that read it, on new rows if they do. UsageError."""

        def declare(made: Function) -> Function:
            named, reads = self._reads(made, name)
            return self._declare(named, "temporary_view", made, reads, {}, comment=comment)

        return declare if function is None else declare(function)

    def check(self) -> None:
        """UsageError where a parameter names no table."""
        there = {*self.sources, *self.declared}
        for one in self.declared.values():
            for parameter, read in one.reads.items():
                if read not in there:
                    raise UsageError(
                        f"{one.kind} {one.name}: there is no table {parameter!r}; there are: {', '.join(sorted(there))}"
                    )

    def _reads(self, function: Function, name: str | None) -> tuple[str, dict[str, str]]:
        named = name or function.__name__
        if not _NAME.fullmatch(named):
            raise UsageError(f"a table's name has letters, digits and _, and {named!r} is none; say name=")
        sources: dict[str, str] = {}
        for source in self.sources:
            written = re.sub(r"\W", "_", source)
            if written in sources:
                raise UsageError(f"sinks {sources[written]!r} and {source!r} are both written {written}: rename one")
            sources[written] = source
        if named in self.declared or named in sources or named in self.sources:
            raise UsageError(f"there is a table {sources.get(named, named)!r} already; choose another name")
        reads = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise UsageError(f"{named}: parameters of its function are the tables that it reads, by name")
            if parameter.default is parameter.empty:
                reads[parameter.name] = sources.get(parameter.name, parameter.name)
        return named, reads

    def _declare(
        self, name: str, kind: str, function: Function, reads: dict[str, str], options: dict[str, Any], **own: Any
    ) -> Function:
        expectations: dict[str, tuple[str, str]] = {}
        for action in ACTIONS:
            option = "expect_all" if action == "warn" else f"expect_all_or_{action}"
            given = options.pop(option, None) or {}
            if not isinstance(given, Mapping) or not all(
                isinstance(text, str) for one in given.items() for text in one
            ):
                raise UsageError(
                    f"{kind} {name}: {option} is a dict of conditions in SQL by name, such as "
                    f'{{"some pieces": "pieces > 0"}}, not {given!r}'
                )
            for said, condition in given.items():
                if said in expectations:
                    raise UsageError(f"{kind} {name}: there are two expectations {said!r}")
                expectations[said] = (action, condition)
        columns = _names(name, "partition_cols", options.pop("partition_cols", ()))
        schema, change = options.pop("schema", None), options.pop("on_schema_change", "append_new_columns")
        form, retention = options.pop("format", "parquet"), options.pop("retention", 86400.0)
        if options:
            raise UsageError(f"{kind} {name} has no option {next(iter(options))!r}; it has {', '.join(_options(kind))}")
        if change not in ("append_new_columns", "fail"):
            raise UsageError(f'{kind} {name}: on_schema_change is "append_new_columns" or "fail", not {change!r}')
        if form not in ("parquet", "delta"):
            raise UsageError(f'{kind} {name}: format is "parquet" or "delta", not {form!r}')
        if isinstance(retention, bool) or not isinstance(retention, (int, float)) or not 0 <= retention < math.inf:
            raise UsageError(f"{kind} {name}: retention is a number of seconds, 0 or more, not {retention!r}")
        self.declared[name] = Declared(
            name,
            kind,
            function,
            reads,
            expectations=expectations,
            partition_cols=columns,
            schema=schema,
            on_schema_change=change,
            format=form,
            retention=float(retention),
            **own,
        )
        return function


def _options(kind: str) -> list[str]:
    own = inspect.signature(getattr(Tables, kind)).parameters.values()
    common = [f"expect_all_or_{one}" for one in ACTIONS if one != "warn"]
    common += ["expect_all", "partition_cols", "schema", "on_schema_change", "format", "retention"]
    return sorted([one.name for one in own if one.kind is one.KEYWORD_ONLY] + common)


def _names(table: str, what: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"table {table}: {what} is a list of columns, not {names!r}")
    return tuple(names)
