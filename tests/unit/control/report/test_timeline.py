"""The pages of a run: windows without gaps whose counts are the report's, and each change once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from small_bolts import Tuples as Count

from esault import Topology, by_key
from esault.control.report.timeline import Page, Timeline
from esault.histogram import Histogram
from esault.messages.settings import Settings
from esault.runtime.session.metrics_tables import MetricsTables
from esault.sources import Items
from esault.testing import LocalRuntime


def topology() -> Topology:
    t = Topology("pages")
    rows = t.spout("rows", Items([(str(n % 50), n) for n in range(20_000)]))
    rows.bolt("count", Count, grouping=by_key(), max_parallelism=8)
    return t


def run_to_the_end(local: LocalRuntime, timeline: Timeline, split_at: int = 3) -> list[Page]:
    pages: list[Page] = []
    while local.driver.phase != "ended":
        if not local.step():
            local.wait()
        page = timeline.next_page(local.driver, local.now())
        if page is not None:
            pages.append(page)
            if len(pages) == split_at and local.driver.phase == "running" and not local.driver.units["count"].finishing:
                local.driver.commands.scale("count", 3, local.now())
        local.clock.advance(0.004)
    last = timeline.last(local.driver, local.now())
    assert last is not None
    return [*pages, last]


def test_windows_have_no_gaps_and_their_counts_are_those_of_the_report():
    local = LocalRuntime(topology(), seed=3, settings=Settings(status_every=0.02))
    pages = run_to_the_end(local, Timeline(period=0.05, slack=0.0))
    report = local.report()
    assert len(pages) > 4
    for name, unit in report.units.items():
        records = [next(u for u in page.units if u.unit == name) for page in pages]
        spans = [(record.t - record.seconds, record.t) for record in records]
        assert spans[0][0] == pytest.approx(0.0, abs=1e-9)
        assert all(a[1] == pytest.approx(b[0]) for a, b in pairwise(spans))
        assert sum(r.emitted * r.seconds for r in records) == pytest.approx(unit.tuples_out)
        assert sum(r.counted["errors"] for r in records) == unit.errors
        if records[0].kind == "bolt":
            assert sum(r.processed * r.seconds for r in records) == pytest.approx(unit.tuples_in)
            assert sum(r.busy for r in records) == pytest.approx(unit.busy_seconds)
            area = sum(r.parallelism * r.seconds for r in records)
            points = [*unit.parallelism, (records[-1].t, 0)]
            whole = sum(n * (b - a) for (a, n), (b, _) in pairwise(points))
            assert area == pytest.approx(whole, rel=1e-4)
    changes = [record for page in pages for _, record in page.changes]
    assert [(c.before, c.after) for c in changes] == [(c.before, c.after) for c in report.changes] == [(1, 3)]


def test_nothing_is_said_before_tuples_flow():
    local = LocalRuntime(topology())
    timeline = Timeline()
    assert timeline.next_page(local.driver, local.now()) is None
    assert timeline.last(local.driver, local.now()) is None


def test_a_histogram_since_an_earlier_one_has_what_came_after():
    times = Histogram()
    for n in range(1, 100):
        times.record(n / 1000)
    before = Histogram.from_snapshot(times.snapshot())
    assert len(times.since(before)) == 0
    for _ in range(50):
        times.record(0.5)
    recent = times.since(before)
    assert len(recent) == 50
    assert recent.quantile(0.5) == pytest.approx(0.5, rel=0.05)
    assert recent.max == pytest.approx(0.5, rel=0.1)


def test_metrics_land_as_tables_over_runs_and_a_full_disk_ends_nothing(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    from esault.sinks.landing import parts

    said: list[str] = []
    for run in ("r1", "r2"):
        local = LocalRuntime(topology(), seed=1, settings=Settings(status_every=0.02))
        tables = MetricsTables(tmp_path / "m", said.append)
        tables.check()
        tables.begin(run, "pages")
        pages = run_to_the_end(local, Timeline(period=0.05, slack=0.0))
        for page in pages:
            tables.write_page(page)
        tables.end(local.report())
        tables.end(None)

    def rows(name: str) -> list[dict[str, object]]:
        return [row for part in parts(tmp_path / "m" / name) for row in pq.read_table(part).to_pylist()]

    assert [(r["run"], r["topology"], r["ended"]) for r in rows("runs")] == [
        ("r1", "pages", "drained"),
        ("r2", "pages", "drained"),
    ]
    assert len([r for r in rows("windows") if r["_run"] == "r2"]) == 2 * len(pages)
    assert [(r["_run"], r["unit"], r["before"], r["after"]) for r in rows("changes")] == [
        ("r1", "count", 1, 3),
        ("r2", "count", 1, 3),
    ]
    assert said == []

    from esault.sinks.landing.disk import LocalDisk

    tables = MetricsTables(tmp_path / "m", said.append)
    tables.begin("r3", "pages")

    def full(self: object, path: str, data: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LocalDisk, "write_new", full)
        tables.write_page(pages[0])
        tables.write_page(pages[-1])
        tables._commit()
        tables.write_page(pages[-1])
        tables.end(None)
    assert len(said) == 1
    assert said[0].startswith("the run's metrics are no longer landed: ")
    assert len(rows("runs")) == 2
