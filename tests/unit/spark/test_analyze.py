"""The landed tables that stand at an address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'esault[parquet]'")

from fsspec.implementations.memory import MemoryFileSystem

from esault.errors import SinkError
from esault.sinks import SparkTable
from esault.spark.analyze import beside, is_place, tables_in
from esault.topology.sink import RunInfo


@pytest.fixture
def tables() -> Iterator[None]:
    for name in ("words", "counts"):
        table = SparkTable(f"memory://landed/{name}", {"word": str})
        table.begin(RunInfo("r1", "topology", name))
        table.end(True)
    yield
    MemoryFileSystem.store.clear()


@pytest.mark.parametrize("address", ["memory://landed", "memory://landed/"])
def test_those_right_below_it_are_found(tables: None, address: str) -> None:
    assert tables_in(address) == {"counts": "memory://landed/counts", "words": "memory://landed/words"}


def test_one_is_named_itself(tables: None) -> None:
    assert tables_in("memory://landed/words") == {"words": "memory://landed/words"}


def test_where_there_is_none_it_is_said(tables: None) -> None:
    with pytest.raises(
        SinkError, match=r"no tables at memory://landed/words/_esault_log: neither it nor what is right"
    ):
        tables_in("memory://landed/words/_esault_log")


def test_what_is_made_of_tables_stands_beside_them_and_of_those_at_an_address_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path / "a")
    assert beside({"t": f"{here}/b/t", "u": f"{here}/c/u"}) == beside({"t": f"{here}/t", "far": "s3://b/u"}) == here
    assert beside({"far": "s3://b/u"}) == str(tmp_path)


def test_a_place_of_tables_is_a_folder_or_an_address(tmp_path: Path) -> None:
    assert is_place(str(tmp_path)) and is_place("s3://bucket/tables")
    assert not is_place(str(tmp_path / "words.py")) and not is_place("module:topology")
