"""`esault analyze`."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esault.cli.topology_argument import params_of, place_of, set_option
from esault.errors import UsageError

if TYPE_CHECKING:
    from esault.spark.pipeline import Pipeline
    from esault.spark.report import ReportTable

__all__ = ["command"]


@dataclass
class _Subject:
    """The subject of an analysis: tables by name, and what the topology file says of them."""

    name: str
    tables: dict[str, str]
    module: Any = None
    paths: list[str] = field(default_factory=list)
    #: of the code of the reports
    code: str = ""


@click.command("analyze")
@click.argument("what", metavar="TOPOLOGY|DIR")
@set_option
@click.option("--list", "listed", is_flag=True, help="Show the jobs, what each would do, and the tables; run nothing.")
@click.option("--job", metavar="NAME", help="Run this job and those that it needs, such as clean:table.")
@click.option("--full", is_flag=True, help="Do again what was done, instead of what is new alone.")
@click.option("--direct", is_flag=True, help="Report on the landed tables as they are; keep nothing.")
@click.option(
    "--into",
    type=click.Path(),
    help="Where clean tables and reports are kept.  [default: analytics/NAME beside the tables]",
)
@click.option("--plot", "plots", type=click.Path(), help="Draw what can be drawn, as PNG files into this folder.")
@click.option("--master", help="URL of a Spark cluster; without it Spark runs here.")
def command(
    what: str,
    settings: tuple[str, ...],
    listed: bool,
    job: str | None,
    full: bool,
    direct: bool,
    into: str | None,
    plots: str | None,
    master: str | None,
) -> None:
    """Spark's reports on the tables that TOPOLOGY has landed, or that stand in DIR.

    Jobs lead from landed tables to reports: clean:TABLE makes a clean table, in which each row stands once, divided by
    day; rows that are wrong go to a quarantine, with the reason. compact:TABLE puts small parts together. reports runs
    the topology file's `reports(tables)`; without one, what can be said of any table; of a folder that `esault run
    --land-metrics` wrote, how elastic its runs were. Each job does only what is new since it last ran, and may be
    killed and started again at any time.

    In the topology file, `expectations = {"table": {"a small total": "total < 9"}}` says in SQL what a row must
    fulfil, and `partition_by = {"table": ["date", "shop"]}` what divides a table.

    \b
    esault analyze words.py --list                 what there is, and what would be done
    esault analyze words.py                        all jobs, then the reports
    esault analyze words.py --job clean:table      no reports
    esault analyze out/metrics --plot out/plots    how elastic runs were
    """
    from esault.spark.analyze import analyze
    from esault.spark.plot import plot
    from esault.spark.report import render

    if direct and (listed or job or full or into):
        raise UsageError("--direct keeps nothing: it goes with --set, --plot and --master alone")
    subject = _folder(what, settings) if os.path.isdir(what) else _topology(what, settings)
    if direct:
        reports = getattr(subject.module, "reports", None)
        for report in analyze(subject.tables, reports, master, plots, say=_say, paths=subject.paths).values():
            print(f"\n{render(report)}")
        return
    pipeline = _pipeline(subject, into, master)
    if listed:
        print("\n\n".join(render(table) for table in pipeline.listing()))
        return
    outcome = pipeline.run(job, full)
    if not outcome.reported and not any(outcome.cleaned.values()):
        _say(f"nothing is new; all stands in {pipeline.into} (--full does all again)")
    for table, reasons in outcome.quarantined.items():
        print(f"\nquarantine of {table}: {sum(reasons.values()):,} rows in {pipeline.clean[table].quarantine.path}")
        print("\n".join(f"  {count:,}: {reason}" for reason, count in list(reasons.items())[:10]))
    for report in outcome.reports.values():
        shown: ReportTable = report if plots is None else replace(report, plot=plot(report, plots))
        print(f"\n{render(shown)}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _folder(what: str, settings: tuple[str, ...]) -> _Subject:
    from esault.spark.analyze import tables_in

    if settings:
        raise UsageError(f"--set is for a topology, and {what} is a folder")
    tables = tables_in(what)
    alone = [os.path.abspath(folder) for folder in tables.values()] == [os.path.abspath(what)]
    return _Subject(next(iter(tables)) if alone else "", tables)


def _topology(what: str, settings: tuple[str, ...]) -> _Subject:
    place = place_of(what)
    from esault.sinks.landing.table import LandedTable

    plan = place.build(params_of(place, settings)).plan()
    tables = {s.name: s.sink.path for s in plan.sinks if isinstance(s.sink, LandedTable)}
    if not tables:
        raise UsageError(f"{what} lands no table: give it a SparkTable sink, or name a folder with landed tables")
    module = place.load_module()
    return _Subject(plan.name, tables, module, [place.folder], _code(place.folder))


def _code(folder: str) -> str:
    """Return a hash of the code. It changes when the topology file changes, or a module from its folder that it imports."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    digest = hashlib.sha256()
    for file in sorted(f for f in files if f and os.path.dirname(os.path.abspath(f)) == os.path.abspath(folder)):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def _pipeline(subject: _Subject, into: str | None, master: str | None) -> Pipeline:
    from esault.spark.elasticity import is_of_runs
    from esault.spark.elasticity import reports as reports_of_runs
    from esault.spark.pipeline import Pipeline, Rules

    module = subject.module
    said = {}
    for name in ("expectations", "partition_by"):
        said[name] = getattr(module, name, None) or {}
        if not isinstance(said[name], dict):
            raise UsageError(f"{name} must be a dict by the name of a sink, not {said[name]!r}")
    reports = getattr(module, "reports", None)
    if reports is None and is_of_runs(subject.tables):
        reports = reports_of_runs
    if into is None:
        beside = os.path.commonpath([os.path.dirname(os.path.abspath(folder)) for folder in subject.tables.values()])
        into = os.path.normpath(os.path.relpath(os.path.join(beside, "analytics", subject.name)))
    rules = Rules(reports, said["expectations"], said["partition_by"], subject.code)
    return Pipeline(subject.tables, into, rules, master=master, say=_say, paths=subject.paths)
