"""What the job that makes a clean table reads next, without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import SCHEMA, add, part_of

from esault.spark.clean import Clean
from esault.spark.derived import DerivedTable
from esault.spark.reading import Reading
from esault.spark.rows import QUARANTINE


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    add(tmp_path / "landed", [1])
    return Clean("sales", str(tmp_path / "landed"), str(tmp_path / "clean"), str(tmp_path / "quarantine"))


def needed(reading: Reading | None) -> Reading:
    assert reading is not None
    return reading


def commit(table: DerivedTable, reading: Reading, quarantine: bool = False) -> None:
    """What a step shows of one of its two tables."""
    with table.locked():
        parts = [] if quarantine else [part_of(table, [0])]
        schema = QUARANTINE if quarantine else SCHEMA
        table.commit(parts, schema, reading.inputs, table.state(), reading.why is not None)


@pytest.mark.parametrize("full", [False, True])
def test_a_step_that_was_killed_behind_its_quarantine_is_ended_there(clean: Clean, tmp_path: Path, full: bool) -> None:
    first = needed(clean.next())
    commit(clean.quarantine, first, True)
    commit(clean.clean, first)
    assert clean.next() is None
    add(tmp_path / "landed", [2])
    killed = needed(clean.next(full))
    assert (killed.why, killed.rows) == (("it was asked for", 2) if full else (None, 1))
    commit(clean.quarantine, killed, True)
    add(tmp_path / "landed", [3, 4])
    # the rows that the quarantine has been asked for are not put aside once more
    again = needed(clean.next())
    assert (again.why, again.rows) == (None, 1)
    assert clean.gone_to(again)
    commit(clean.clean, again)
    more = needed(clean.next())
    assert (more.why, more.rows) == (None, 2)
    assert not clean.gone_to(more)


def test_reports_and_views_see_that_all_was_made_anew(clean: Clean) -> None:
    commit(clean.clean, needed(clean.next()))
    before = clean.clean.state().inputs
    commit(clean.clean, needed(clean.next(full=True)))
    assert clean.clean.state().inputs != before
    assert clean.next() is None
