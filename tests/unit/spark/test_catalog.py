"""Names in a catalog: those that are refused, what is said to a session, and which catalog it has; without Spark."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import add

from esault.errors import UsageError
from esault.spark.catalog import Catalog, Registered, _unreached, catalog_of, metastore, register_table
from esault.spark.pipeline import Pipeline
from esault.spark.tables.declared import Tables
from esault.spark.tables.runs import steps_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Sales", "--catalog shop: table 'sales' and table 'Sales' would both be shop.sales there; rename one"),
        ("sales_quarantine", "table 'sales_quarantine' and the quarantine of 'sales' would both be shop.sales_quar"),
    ],
)
def test_two_tables_of_one_name_are_refused_before_anything_is_done(tmp_path: Path, name: str, said: str) -> None:
    tables = Tables(["sales"])

    def made(sales: Any) -> Any:
        return sales

    tables.table(made, name=name)
    steps = steps_of(tables, str(tmp_path))
    Pipeline({"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps)
    with pytest.raises(UsageError, match=said):
        Pipeline({"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps, catalog="shop")


def test_a_table_without_a_quarantine_leaves_its_name_free(tmp_path: Path) -> None:
    tables = Tables(["sales"])

    @tables.table
    def sold(sales: Any) -> Any:
        return sales

    @tables.table
    def sold_quarantine(sales: Any) -> Any:
        return sales

    made = Pipeline(
        {"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps_of(tables, str(tmp_path)), catalog="shop"
    )
    assert [step.quarantines for step in made.steps.values()] == [False, False]


class Asked:
    """The answer to a statement."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self.rows = rows

    def collect(self) -> list[tuple[str, str]]:
        return self.rows


class Session:
    """A session whose catalog has tables and views, by name, with what it says of them."""

    def __init__(self, delta: bool = False, **there: dict[str, str]) -> None:
        self.there = there
        self.statements: list[str] = []
        self.catalog = self
        self.conf = self
        self.delta = delta

    def get(self, name: str, default: str) -> str:
        known = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
        known["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        return known.get(name, default) if self.delta else default

    def tableExists(self, name: str) -> bool:
        return name.partition(".")[2] in self.there

    def sql(self, statement: str) -> Asked:
        name = re.findall("`[^`]+`", statement)[1].strip("`") if "." in statement else ""
        if statement.startswith("DESCRIBE"):
            return Asked([(key, value) for key, value in self.there[name].items() if "." not in key])
        if statement.startswith("SHOW TBLPROPERTIES"):
            return Asked([(key, value) for key, value in self.there[name].items() if "." in key])
        self.statements.append(statement)
        if statement.startswith("CREATE OR REPLACE VIEW"):
            said = dict(re.findall(r"'(esault\.\w+)' = '([^']*)'", statement))
            self.there[name] = said
        if statement.startswith("DROP VIEW"):
            del self.there[name]
        return Asked([])


def test_a_name_is_a_view_of_the_newest_version_and_a_newer_one_takes_its_place(tmp_path: Path) -> None:
    add(tmp_path, [1])
    spark: Any = Session()
    assert register_table(spark, "shop.sold", tmp_path, "it's sold") == Registered("shop.sold", str(tmp_path), 1)
    (made,) = spark.statements
    assert made.startswith(r"CREATE OR REPLACE VIEW `shop`.`sold` COMMENT 'it\'s sold' TBLPROPERTIES (")
    assert made.endswith(f"SELECT `n` FROM parquet.`file://{tmp_path}/_esault_catalog/shop.sold/1/0`")
    add(tmp_path, [2])
    assert register_table(spark, "shop.sold", tmp_path).version == 2
    assert spark.there["sold"] == {"esault.path": str(tmp_path), "esault.version": "2"}
    assert sorted(path.name for path in (tmp_path / "_esault_catalog/shop.sold").iterdir()) == ["1", "2"]


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (
            {"provider": "parquet"},
            "shop.sold is a table or view that eSault has not made: choose another name, or drop",
        ),
        ({"esault.path": "/elsewhere"}, "shop.sold is a view of the table in /elsewhere: choose another"),
    ],
)
def test_what_has_the_name_already_stays(tmp_path: Path, there: dict[str, str], said: str) -> None:
    add(tmp_path, [1])
    spark: Any = Session(sold=there)
    with pytest.raises(UsageError, match=said):
        register_table(spark, "shop.sold", tmp_path)
    Catalog("shop").forget(spark, [("sold", str(tmp_path))])
    assert not spark.statements and not (tmp_path / "_esault_catalog").exists()


def test_a_view_of_what_is_no_more_goes(tmp_path: Path) -> None:
    spark: Any = Session(most_sold={"esault.path": str(tmp_path)})
    Catalog("shop").forget(spark, [("never made", str(tmp_path)), ("most sold", str(tmp_path))])
    assert spark.statements == ["DROP VIEW `shop`.`most_sold`"]


def test_a_table_of_delta_lake_is_registered_as_one_where_spark_has_its_jar(tmp_path: Path) -> None:
    add(tmp_path, [1])
    (tmp_path / "_delta_log").mkdir()
    spark: Any = Session()
    assert register_table(spark, "shop.sold", tmp_path).version == 1  # as any other
    spark.delta = True
    assert register_table(spark, "shop.sold", tmp_path).version is None
    assert spark.statements[-2:] == [
        "DROP VIEW `shop`.`sold`",
        f"CREATE TABLE `shop`.`sold` USING delta LOCATION 'file://{tmp_path}'",
    ]
    spark.there["sold"] = {"provider": "delta", "location": f"file:{tmp_path}"}
    assert register_table(spark, "shop.sold", tmp_path).version is None
    assert len(spark.statements) == 3
    spark.there["sold"]["location"] = "file:///elsewhere"
    with pytest.raises(UsageError, match="shop.sold is a table in file:///elsewhere"):
        register_table(spark, "shop.sold", tmp_path)


def test_what_cannot_be_registered_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    spark: Any = Session()
    for name, path, said in (
        ("shop.sold", "s3://bucket/t", "a table in an object store is not registered"),
        ("a.b.c", str(tmp_path), "name a table as database.table"),
        ("shop.it's", str(tmp_path), "name a table as database.table"),
        ("shop.sold", str(tmp_path), "is a table of Delta Lake, and this Spark has no jar of it"),
    ):
        with pytest.raises(UsageError, match=said):
            register_table(spark, name, path)
    with pytest.raises(UsageError, match="--catalog 'a b': name a database"):
        Catalog("a b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "ERROR XSDB6: Another instance of Derby may have",
            "the catalog is open in another process, and Derby lets one",
        ),
        (
            "HiveException: x\nCaused by: a\nCaused by: Connection refused",
            "metastore cannot be reached: Connection refused",
        ),
        ("MetaException(message:no)", r"metastore cannot be reached: MetaException\(message:no\)"),
        ("TABLE_OR_VIEW_NOT_FOUND", None),
    ],
)
def test_the_way_to_a_metastore_is_told_from_other_errors(text: str, said: str | None) -> None:
    found = _unreached(ValueError(text))
    assert found is None if said is None else re.search(said, found or "")


def test_a_catalog_is_the_one_that_settings_name_or_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    hive = {"spark.sql.catalogImplementation": "hive"}
    assert catalog_of({}) is None
    assert catalog_of({"spark.sql.catalog.spark_catalog": delta}) is None
    assert catalog_of({"spark.sql.catalog.spark_catalog": "org.example.Catalog"}) == {}
    assert catalog_of(hive) == {}
    assert catalog_of({"spark.hadoop.hive.metastore.uris": "thrift://host:9083"}) == hive
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert catalog_of({}) is None
    (tmp_path / "hive-site.xml").touch()
    assert catalog_of({}) == hive
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.catalogImplementation in-memory\n")
    assert catalog_of({}) == {}
    monkeypatch.chdir(tmp_path)
    assert f"databaseName={tmp_path}/m/derby;" in metastore("m")["spark.hadoop.javax.jdo.option.ConnectionURL"]
