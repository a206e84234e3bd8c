"""The rows of a table by key: those that came merged with those of before, and the files in whose place they come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from esault.errors import EsaultError, UsageError
from esault.sinks.landing.schema import Column, Schema
from esault.sinks.landing.state import TableState
from esault.spark.columns import stored
from esault.spark.derived import DerivedTable
from esault.spark.failure import said
from esault.spark.rows import PART, ROW, UNFIT
from esault.spark.table import quoted, read_parts
from esault.spark.tables import merge
from esault.spark.tables.contract import evolved
from esault.spark.tables.declared import Declared
from esault.spark.tables.rewriting import conformed, files_of, placed
from esault.spark.tables.update import Update

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KeyedRows"]

#: names that are added to rows of before, where no key may have them
_PLACES = (PART, ROW, UNFIT)


class KeyedRows:
    """Those of table `one`, which stands in folder `path`; `gone` keeps its deletions."""

    def __init__(self, one: Declared, path: str, gone: DerivedTable) -> None:
        self._one, self._path, self._gone = one, path, gone

    def columns(self, frame: DataFrame, schema: Schema) -> Schema:
        """The columns that the table would have, of changes with these. UsageError for what cannot be."""
        changes, _ = self._changes(frame, schema)
        return stored(self._one.name, self._merged(None, changes, None))[1]

    def _changes(self, frame: DataFrame, schema: Schema) -> tuple[DataFrame, Schema]:
        """The rows that came for a table by key, with `DELETED` where that is by sequence. UsageError."""
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as f

        one = self._one
        there = [column.name for column in schema]
        for what, names in (
            ("keys", one.keys),
            ("sequence_by", filter(None, [one.sequence_by])),
            ("merge", one.merge or ()),
        ):
            for name in names:
                if name not in there:
                    raise UsageError(
                        f"table {one.name}: {what} names {name!r}, which its function does not return; there are: "
                        f"{', '.join(there)}"
                    )
        added = [*(name for name in _PLACES if name in one.keys), *(() if one.merge is not None else (merge.DELETED,))]
        added += [merge.START, merge.END] if one.scd_type == 2 else []
        if taken := [name for name in there if name in added and name not in one.except_column_list]:
            raise UsageError(
                f"table {one.name}: column {taken[0]!r} has the name of one that is added while its rows are merged; give it another "
                "name with alias"
            )
        if one.merge is not None:
            for name in there:
                if name not in one.keys and name not in one.merge:
                    raise UsageError(f"table {one.name}: say in merge, too, how column {name!r} is merged")
            return frame, schema
        kept = tuple(c for c in schema if c.name not in one.except_column_list)
        if missing := {*one.keys, one.sequence_by} - {c.name for c in kept}:
            raise UsageError(f"table {one.name}: {', '.join(map(str, missing))} must be stored, since rows go by it")
        gone = f.coalesce(f.expr(one.apply_as_deletes or "false").cast("boolean"), f.lit(False))
        try:
            changes = frame.select(*(f.col(quoted(c.name)) for c in kept), gone.alias(merge.DELETED))
        except AnalysisException as error:
            raise UsageError(
                f"table {one.name}: apply_as_deletes is no condition on a row ({one.apply_as_deletes}): {said(error)}"
            ) from None
        return changes, kept

    def _merged(self, before: DataFrame | None, changes: DataFrame, gone: DataFrame | None) -> DataFrame:
        one = self._one
        if one.merge is not None:
            return merge.totals(before, changes, one.keys, one.merge)
        assert one.sequence_by is not None
        merged = merge.history if one.scd_type == 2 else merge.newest
        return merged(before, changes, gone, one.keys, one.sequence_by)

    def update(
        self, spark: SparkSession, frame: DataFrame, schema: Schema, update: Update, before: TableState
    ) -> tuple[DataFrame, Schema, list[str]]:
        """The rows to write, their columns, and the files in whose place they come."""
        from pyspark.sql import functions as f

        one = self._one
        changes, schema = self._changes(frame, schema)
        if one.merge is None:
            empty = changes.where(" OR ".join(f"{quoted(str(n))} IS NULL" for n in (*one.keys, one.sequence_by)))
            if count := empty.count():
                raise EsaultError(
                    f"table {one.name}: {count:,} changes have null in {', '.join(one.keys)} or {one.sequence_by}; leave "
                    "them out with expect_all_or_drop or expect_all_or_quarantine"
                )
        whole = update.why is not None
        own: Schema = (
            (Column(merge.START, "string", True), Column(merge.END, "string", True)) if one.scd_type == 2 else ()
        )
        if own:
            kind = next(column.type for column in schema if column.name == one.sequence_by)
            own = tuple(replace(column, type=kind) for column in own)
        columns: Schema = (*schema, *own)
        old: DataFrame | None = None
        removed: list[str] = []
        if not whole:
            columns = evolved(one.name, before.schema, columns, one.on_schema_change)
            names = list(before.files or ())
            if names:
                there = placed(spark, self._path, names, columns)
                removed = files_of(merge.of_keys(there, one.keys, changes), names)
                old = read_parts(spark, self._path, removed, columns, True)
            rest = tuple(c for c in columns if c.name not in [each.name for each in own])
            flag = [f.col(merge.DELETED)] if one.merge is None else []
            changes = conformed(changes, rest, flag)
        gone = self._deleted(spark, changes, update, whole)
        return self._merged(old, changes, gone), columns, removed

    def _deleted(self, spark: SparkSession, changes: DataFrame, update: Update, whole: bool) -> DataFrame | None:
        """Deletions of before, of the keys that have changed; those that came are added to them first, which is right
        whenever it happens: they are facts."""
        from pyspark.sql import functions as f

        if not self._one.apply_as_deletes:
            return None
        names = [*self._one.keys, str(self._one.sequence_by)]
        state = self._gone.state()
        rows, schema = stored(self._one.name, changes.where(merge.DELETED).select(*map(quoted, names)))
        parts = self._gone.stage(rows)
        if parts or whole or state.version < 0:
            self._gone.commit(parts, schema, update.inputs, state, whole)
        if whole or not state.files:
            return None
        before = read_parts(spark, self._gone.path, list(state.files), state.schema, state.evolved)
        of_these = merge.of_keys(before, self._one.keys, changes)
        if (
            self._one.scd_type == 2
        ):  # a version that comes late ends with the first of them behind it, not with the last
            return of_these.select(*map(quoted, names)).distinct()
        return of_these.groupBy(*map(quoted, self._one.keys)).agg(f.max(quoted(names[-1])).alias(names[-1]))
