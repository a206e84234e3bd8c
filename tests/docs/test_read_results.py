"""The lines of "Read results" for other libraries, on what each sink wrote."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import esault
from esault import Topology
from esault.sinks import DeltaSink, JsonLines, Parquet, SparkTable
from esault.sources import Items

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-results.md"
COLUMNS = {"word": str, "total": int}
WRITTEN = ["table", "newest", "parquet", "lines", *(["delta"] if find_spec("deltalake") else [])]


def topology() -> Topology:
    t = Topology("totals")
    rows = t.spout("totals", Items([("a", {"total": 1}), ("b", {"total": 7})]))
    rows.sink("table", SparkTable("out/table", COLUMNS))
    rows.sink("newest", SparkTable("out/newest", COLUMNS, primary_key="word"))
    rows.sink("parquet", Parquet("out/parquet", COLUMNS))
    rows.sink("lines", JsonLines("out/lines"))
    if find_spec("deltalake"):
        rows.sink("delta", DeltaSink("out/delta", COLUMNS))
    return t


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        esault.run(topology, engine="local", checkpoint=0.1, state=folder / "state")
    return folder


def shown(library):
    """What the page shows for a library: lines of Python, of which the last is an expression."""
    found = re.search(rf"^\| {library} \| (.*) \|$", PAGE.read_text(), re.M)
    code = re.findall(r"`([^`]+)`", found[1])
    return code if library == "DuckDB" else code[:1]


@pytest.mark.parametrize("what", WRITTEN)
@pytest.mark.parametrize("library", ["pandas", "Polars", "DuckDB", "Python"])
def test_the_line_of_the_page_gives_the_rows(folder, monkeypatch, library, what):
    names = {"esault": esault}
    if library != "Python":
        names[library.lower()] = pytest.importorskip(library.lower())
    monkeypatch.chdir(folder)
    *before, last = (line.replace("out/totals", f"out/{what}") for line in shown(library))
    for line in before:
        exec(line, names)
    if what == "lines":  # a nested value is a struct
        last = last.replace("max(total)", "max(value.total)")
    found = eval(last, names)
    if library == "DuckDB":
        assert found.fetchall() == [(7,)]
    else:
        assert len(found) == 2
