"""Tables under names that any session of Spark knows: views in a catalog, each of one committed version.

A view reads a snapshot (`snapshot`): a folder of hard links to the parts of that version, `_esault_catalog/NAME/VERSION`
in the table's own folder. So it shows what was committed and nothing else, holds no list of files, needs no eSault to be read,
and stays right whatever compaction and vacuum do to the table. To show a newer version is one statement, which takes
the place of the view at once; the snapshot before stays for a day, for those who read it.

Tables of Delta Lake are registered as such, where Spark has Delta's jar.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from esault.errors import EsaultError, UsageError
from esault.sinks.landing import LOG_FOLDER, table_log
from esault.spark.delta_jar import DELTA_CATALOG, has_delta
from esault.spark.derived import DerivedTable
from esault.spark.failure import failures, said
from esault.spark.snapshot import Snapshots, literal
from esault.spark.spark_defaults import spark_defaults
from esault.spark.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Catalog", "Registered", "catalog_of", "metastore", "register_table", "report_name"]

#: the property of a view that says which table it shows
_PATH, _VERSION = "esault.path", "esault.version"
_NAME = re.compile(r"[A-Za-z0-9_]+")
_IMPLEMENTATION = "spark.sql.catalogImplementation"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_OF_HIVE = ("spark.hadoop.hive.metastore.", "spark.hadoop.javax.jdo.")


def metastore(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the settings of a session whose catalog is kept in this folder (Derby, by Hive's support in Spark), by one process at a time."""
    path = os.path.abspath(folder)
    return {
        _IMPLEMENTATION: "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={path}/derby;create=true",
        "spark.sql.warehouse.dir": f"{path}/warehouse",
        # else it writes a log of its own where the command is started
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
    }


def catalog_of(conf: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a session needs besides `conf` and spark-defaults.conf to use the catalog that these name; None where they name none."""
    said = {**spark_defaults(os.environ), **conf}
    if _IMPLEMENTATION in said or said.get(_SESSION_CATALOG, DELTA_CATALOG) != DELTA_CATALOG:
        return {}
    site = os.path.join(os.environ.get("SPARK_CONF_DIR", ""), "hive-site.xml")
    if os.path.isfile(site) or any(name.startswith(_OF_HIVE) for name in said):
        return {_IMPLEMENTATION: "hive"}
    return None


@dataclass(frozen=True)
class Registered:
    """A table in a catalog, as of `version`; None: of Delta Lake, whose newest is shown."""

    name: str
    path: str
    version: int | None


class Catalog:
    """Database `name` of the session's catalog. UsageError: it is no name."""

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"--catalog {name!r}: name a database of Spark's catalog, of letters, digits and _: shop")
        self.name = name

    def check(self, tables: Iterable[str], quarantined: Iterable[str], reports: Iterable[str] = ()) -> None:
        """UsageError where two of the tables, of the quarantines of `quarantined`, and of the reports would have one name."""
        said = [(name, f"table {name!r}") for name in tables]
        said += [(f"{name}_quarantine", f"the quarantine of {name!r}") for name in quarantined]
        said += [(report_name(name), f"report {name!r}") for name in reports]
        names: dict[str, str] = {}
        for name, what in said:
            word = _word(name).casefold()
            if word in names:
                raise UsageError(
                    f"--catalog {self.name}: {names[word]} and {what} would both be {self.name}.{word} there; rename one"
                )
            names[word] = what

    def make(self, spark: SparkSession) -> None:
        """Make the database where it is not there. UsageError: the catalog cannot be reached."""
        try:
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(self.name)}")
        except failures() as error:
            raise UsageError(f"--catalog {self.name}: {_unreached(error) or said(error)}") from None

    def forget(self, spark: SparkSession, tables: Iterable[tuple[str, str]]) -> None:
        """Remove the views of tables that go: name, folder. What else has such a name stays. EsaultError: what Spark raises."""
        for word, folder in tables:
            name = f"{self.name}.{_word(word)}"
            named = ".".join(map(quoted, name.split(".")))
            try:
                there = _there(spark, name, named)
                if there is not None and there.get(_PATH) == os.path.abspath(folder):
                    spark.sql(f"DROP VIEW {named}")
            except failures() as error:
                raise EsaultError(f"{name} is not removed: {_unreached(error) or said(error)}") from None

    def register(self, spark: SparkSession, tables: Iterable[tuple[str, DerivedTable, str]]) -> list[Registered]:
        """Have names show the newest version of tables: name, table, comment. Raises as `register_table`.

        In a name a-z, digits and _ stay; what else there is becomes _.
        """
        return [
            register_table(spark, f"{self.name}.{_word(name)}", table.path, comment) for name, table, comment in tables
        ]


def report_name(name: str) -> str:
    """Return the name that a report has in the catalog, before what cannot stand there is replaced."""
    return f"{name}_report"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def register_table(spark: SparkSession, name: str, path: str | os.PathLike[str], comment: str = "") -> Registered:
    """Have `name`, such as "shop.sales", show the committed version of the table in folder `path`, in place of what it showed before.

    Rows that a replay repeated come once; of a primary key the newest row. UsageError: the name is taken by something else, or the table
    is Delta Lake's and Spark has no jar for it. SinkError: no table; EsaultError: what Spark raises.
    """
    if "://" in os.fspath(path):
        raise UsageError(
            f"{path}: a table in an object store is not registered: a view shows a version by hard links to its files"
        )
    folder = os.path.abspath(path)
    words = name.split(".")
    if not all(map(_NAME.fullmatch, words)) or len(words) > 2:
        raise UsageError(f"{name!r}: name a table as database.table, of letters, digits and _")
    named = ".".join(map(quoted, words))
    delta = os.path.isdir(os.path.join(folder, "_delta_log"))
    ours = os.path.isdir(os.path.join(folder, LOG_FOLDER))
    try:
        if delta and has_delta(spark):
            return _registered_delta(spark, name, named, folder)
        if delta and not ours:
            raise UsageError(
                f"{folder} is a table of Delta Lake, and this Spark has no jar of it, or is not set up for it: spark.jars.packages, "
                "spark.sql.extensions and spark.sql.catalog.spark_catalog, as Delta's pages say"
            )
        return _registered_view(spark, name, named, folder, comment)
    except failures() as error:
        raise EsaultError(f"{name} is not registered: {_unreached(error) or said(error)}") from None


def _registered_delta(spark: SparkSession, name: str, named: str, folder: str) -> Registered:
    there = _there(spark, name, named)
    if there is not None and there.get("provider") == "delta":
        if _local(there.get("location", "")) != folder:
            raise _taken(name, f"a table in {there.get('location')}")
        return Registered(name, folder, None)
    if there is not None:
        _check_ours(name, there, folder)
        spark.sql(f"DROP VIEW {named}")  # of before the jar was there
    spark.sql(f"CREATE TABLE {named} USING delta LOCATION {literal('file://' + folder)}")
    return Registered(name, folder, None)


def _registered_view(spark: SparkSession, name: str, named: str, folder: str, comment: str) -> Registered:
    state = table_log(folder).at()
    there = _there(spark, name, named)
    if there is not None:
        _check_ours(name, there, folder)
    snapshots = Snapshots(folder, name)
    query = snapshots.query(state)
    properties = f"{literal(_PATH)} = {literal(folder)}, {literal(_VERSION)} = {literal(str(state.version))}"
    spark.sql(f"CREATE OR REPLACE VIEW {named} COMMENT {literal(comment)} TBLPROPERTIES ({properties}) AS {query}")
    snapshots.forget(there.get(_VERSION) if there else None, str(state.version))
    return Registered(name, folder, state.version)


def _there(spark: SparkSession, name: str, named: str) -> dict[str, str] | None:
    """Return what the catalog says of a table or view of this name; None: there is none."""
    if not spark.catalog.tableExists(name):
        return None
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {named}").collect()
    found = {str(row[0]).lower(): str(row[1]) for row in rows}
    return found | {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {named}").collect()}


def _check_ours(name: str, there: Mapping[str, str], folder: str) -> None:
    if _PATH not in there:
        raise _taken(name, "a table or view that eSault has not made")
    if there[_PATH] != folder:
        raise _taken(name, f"a view of the table in {there[_PATH]}")


def _taken(name: str, what: str) -> UsageError:
    return UsageError(f"{name} is {what}: choose another name, or drop it there (DROP VIEW, DROP TABLE) and try again")


def _local(location: str) -> str:
    return re.sub(r"^file:(//)?(?=/)", "", location)


def _unreached(error: Exception) -> str | None:
    """Return what is wrong with the way to a metastore; None where it is something else."""
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    if "XSDB6" in text or "Another instance of Derby" in text:
        return "the catalog is open in another process, and Derby lets one in at a time: end that session, or take a server of Hive's metastore"
    if not any(name in text for name in ("MetaException", "HiveMetaStoreClient", "HiveException")):
        return None
    causes = [
        line.strip().removeprefix("Caused by: ")
        for line in text.splitlines()
        if line.lstrip().startswith("Caused by: ")
    ]
    return f"Hive's metastore cannot be reached: {causes[-1] if causes else text.splitlines()[0]}"
