"""The steps of all tables of a pipeline, in their order, and what they would make of what is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from esault.sinks.landing import table_log
from esault.sinks.landing.schema import Schema
from esault.spark.tables.declared import Tables
from esault.spark.tables.graph import ordered
from esault.spark.tables.step import TableStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["checked", "steps_of"]


def steps_of(tables: Tables, into: str) -> list[TableStep]:
    """A step for each table that has rows of its own; they write into `into`/tables. UsageError for what cannot be."""
    into = os.path.abspath(into)
    declared = {one.name: one for one in ordered(tables)}
    folders = {name: os.path.join(into, "clean", name) for name in tables.sources}
    folders |= {name: os.path.join(into, "tables", name) for name, one in declared.items() if one.stored}
    return [TableStep(name, declared, folders, into) for name, one in declared.items() if one.stored]


def checked(spark: SparkSession, steps: list[TableStep], landed: Mapping[str, str]) -> dict[str, Schema]:
    """The columns that each table would have: all functions are called on tables without rows, and nothing is written.

    `landed`: folders of the landed tables. UsageError for what cannot be, such as a column that is not there.
    """
    schemas: dict[str, Schema] = {name: table_log(folder).state.schema for name, folder in landed.items()}
    for step in steps:
        schemas[step.table_name] = step.check(spark, schemas)
    return schemas
