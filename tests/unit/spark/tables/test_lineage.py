"""Events of lineage: two for each job that did something, of one run, with what is known of the tables at its end."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent))
from derived_tables import SCHEMA, add

from esault.errors import EsaultError
from esault.spark.tables.lineage import Lineage
from esault.spark.tables.step import Updated


def updated(expectations: dict[str, tuple[str, int]]) -> Updated:
    return Updated("sold", 10, 7, 70, None, expectations, 10, 3, SCHEMA, 1.5, 2)


def events(into: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (into / "lineage.jsonl").read_text().splitlines()]


def lineage(tmp_path: Path) -> Lineage:
    add(tmp_path / "sales", [1, 2])
    add(tmp_path / "sold", [1])
    add(tmp_path / "aside", [2])
    writes = [str(tmp_path / name) for name in ("sold", "aside", "not-made")]
    jobs = {"table:sold": ([str(tmp_path / "sales")], writes)}
    return Lineage("shop", str(tmp_path / "into"), jobs, now=lambda: 1_800_000_000.25)


def test_a_job_that_did_something_began_and_was_complete(tmp_path: Path) -> None:
    lineage(tmp_path).ended("table:sold", updated({"some pieces": ("quarantine", 3), "a shop": ("drop", 0)}), 1.5, None)
    start, complete = events(tmp_path / "into")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    moments = [datetime.fromisoformat(each["eventTime"]).timestamp() for each in (start, complete)]
    assert moments == [1_800_000_000.25 - 1.5, 1_800_000_000.25]
    assert start["run"] == complete["run"] and complete["run"]["facets"] == {}
    uuid.UUID(start["run"]["runId"])
    assert complete["job"] == {"namespace": "esault", "name": "shop.table:sold"}
    (read,) = complete["inputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "sales"))
    assert read["facets"]["schema"]["fields"] == [{"name": "n", "type": "long"}]
    assert "outputFacets" not in read
    sold, aside, not_made = complete["outputs"]
    assert sold["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert sold["facets"]["version"]["datasetVersion"] == "1"
    assert sold["facets"]["dataQualityAssertions"]["assertions"] == [
        {"assertion": "some pieces", "success": False},
        {"assertion": "a shop", "success": True},
    ]
    # counts are those of the table itself
    assert "outputFacets" not in aside and set(aside["facets"]) == {"schema", "version"}
    assert not_made == {"namespace": "file", "name": str(tmp_path / "not-made"), "facets": {}}


def test_an_error_is_told_with_its_text_and_without_counts(tmp_path: Path) -> None:
    told = lineage(tmp_path)
    told.ended("table:sold", None, 0.0, EsaultError("no rows of today"))
    told.ended("table:sold", updated({}), 1.0, None)
    _, fail, _, complete = events(tmp_path / "into")
    assert fail["eventType"] == "FAIL"
    facet = fail["run"]["facets"]["errorMessage"]
    assert (facet["message"], facet["programmingLanguage"]) == ("EsaultError: no rows of today", "PYTHON")
    assert facet["_schemaURL"].endswith("ErrorMessageRunFacet")
    assert "outputFacets" not in fail["outputs"][0]
    assert complete["run"]["runId"] != fail["run"]["runId"]
    assert "dataQualityAssertions" not in complete["outputs"][0]["facets"]


def test_nothing_is_told_of_what_did_nothing_or_is_no_job_of_it(tmp_path: Path) -> None:
    told = lineage(tmp_path)
    told.ended("table:sold", None, 1.0, None)
    told.ended("table:other", updated({}), 1.0, None)
    assert not (tmp_path / "into").exists()


def test_what_a_job_writes_may_be_known_at_its_end_alone(tmp_path: Path) -> None:
    told, made = lineage(tmp_path), list[str]()
    told.add("reports", [str(tmp_path / "sold")], lambda: made)
    made.append(str(tmp_path / "reports" / "sales"))
    told.ended("reports", object(), 1.0, None)
    assert [each["name"] for each in events(tmp_path / "into")[0]["outputs"]] == made


def test_tables_in_a_store_have_its_bucket_as_their_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esault.errors import SinkError

    def none(folder: str) -> Any:
        raise SinkError("no such bucket")

    monkeypatch.setattr("esault.spark.tables.lineage.table_log", none)
    told = Lineage("shop", str(tmp_path), {"clean:sales": (["s3://bucket/landed/sales"], [])})
    told.ended("clean:sales", object(), 1.0, None)
    assert events(tmp_path)[0]["inputs"] == [{"namespace": "s3://bucket", "name": "landed/sales", "facets": {}}]
