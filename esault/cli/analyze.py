"""`esault analyze`."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from esault.cli.finite_range import FiniteRange
from esault.cli.named_values import spark_conf
from esault.cli.repeated_runs import hash_of, repeat_runs
from esault.cli.spark_session import say
from esault.cli.topology_argument import params_of, place_of, set_option
from esault.errors import UsageError

if TYPE_CHECKING:
    from esault.spark.jobs import Outcome
    from esault.spark.report import ReportTable
    from esault.spark.tables.runs import Runs
    from esault.spark.tables.schedule import Schedule

__all__ = ["command"]


@dataclass
class _Subject:
    """The subject of an analysis: tables by name, and what the topology file says of them."""

    name: str
    tables: dict[str, str]
    module: Any = None
    paths: list[str] = field(default_factory=list)
    #: hashes of the files with its code, by path
    code: dict[str, str] = field(default_factory=dict)


@click.command("analyze")
@click.argument("what", metavar="TOPOLOGY|DIR")
@set_option
@click.option("--list", "listed", is_flag=True, help="Show the jobs, what each would do, and the tables; run nothing.")
@click.option("--job", metavar="NAME", help="Run this job and those that it needs: clean:table, table:NAME, tables.")
@click.option("--full", is_flag=True, help="Do again what was done, instead of what is new alone.")
@click.option("--dry-run", is_flag=True, help="Call the functions of `pipeline` on tables without rows; write nothing.")
@click.option("--backfill", metavar="SQL", help="With --job table:NAME: make anew the rows for which this is true.")
@click.option("--graph", "picture", type=click.Path(), help="Draw the tables into this file: .svg or .mmd (Mermaid).")
@click.option("--history", is_flag=True, help="Show the last runs of the pipeline.")
@click.option("--quality", is_flag=True, help="Show how many rows expectations did not hold for, over all runs.")
@click.option("--follow", is_flag=True, help="Go on: run again whenever rows have landed.")
@click.option("--every", type=FiniteRange(min=1), metavar="SECONDS", help="Go on: run again each so many seconds.")
@click.option("--cron", metavar="LINE", help='Go on: run at the times of a crontab line, UTC, such as "0 * * * *".')
@click.option("--retries", type=click.IntRange(min=0), default=0, help="Try a job that fails so many times again.")
@click.option("--direct", is_flag=True, help="Report on the landed tables as they are; keep nothing.")
@click.option(
    "--into",
    type=click.Path(),
    help="Where clean tables and reports are kept.  [default: analytics/NAME beside the tables; here, where those are at an address]",
)
@click.option("--catalog", metavar="NAME", help="Show all tables in this database of Spark's catalog: NAME.table.")
@click.option("--plot", "plots", type=click.Path(), help="Draw what can be drawn, as PNG files into this folder.")
@click.option("--master", help="URL of a Spark cluster; without it Spark runs here.")
@click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of Spark, such as spark.driver.memory=4g. May be repeated.",
)
def command(
    what: str,
    settings: tuple[str, ...],
    listed: bool,
    job: str | None,
    full: bool,
    dry_run: bool,
    backfill: str | None,
    picture: str | None,
    history: bool,
    quality: bool,
    follow: bool,
    every: float | None,
    cron: str | None,
    retries: int,
    direct: bool,
    into: str | None,
    catalog: str | None,
    plots: str | None,
    master: str | None,
    conf: tuple[str, ...],
) -> None:
    """Spark's reports on the tables that TOPOLOGY has landed, or that stand in DIR, a folder or an address such as s3://bucket/tables.

    Jobs lead from landed tables to reports: clean:TABLE makes a clean table, in which each row stands once, divided by
    day; rows that are wrong go to a quarantine, with the reason. compact:TABLE puts small parts together. reports runs
    the topology file's `reports(tables)`. table:NAME makes a table that its `pipeline(tables)` declares: streaming
    tables, upserts, histories, totals, views, with expectations. Without `reports`, what can be said of any table; of a folder that `esault run
    --land-metrics` wrote, how elastic its runs were. Each job does only what is new since it last ran, and may be
    killed and started again at any time.

    In the topology file, `expectations = {"table": {"a small total": "total < 9"}}` says in SQL what a row must
    fulfil, and `partition_by = {"table": ["date", "shop"]}` what divides a table.

    With --catalog shop another session of Spark reads the tables as shop.table, in SQL: the version that was committed last. Where
    Spark's settings name no catalog, one is kept in `metastore`, beside the tables.

    \b
    esault analyze words.py --list                 what there is, and what would be done
    esault analyze words.py --dry-run              are the tables of `pipeline` right?
    esault analyze words.py --follow --retries 3   after each landing, until Ctrl-C
    esault analyze words.py                        all jobs, then the reports
    esault analyze words.py --job clean:table      no reports
    esault analyze out/metrics --plot out/plots    how elastic runs were
    """
    from esault.spark.analyze import analyze, is_place
    from esault.spark.report import render

    goes_on = follow or every or cron
    looks = listed or history or quality or dry_run or picture
    if direct and (looks or job or full or into or catalog or backfill or goes_on or retries):
        raise UsageError("--direct keeps nothing: it goes with --set, --plot, --master and --conf alone")
    if goes_on and (looks or backfill):
        raise UsageError(
            "--follow, --every and --cron run jobs again and again: leave out --list, --graph, --history, --quality, --dry-run and --backfill"
        )
    if sum(map(bool, (follow, every, cron))) > 1:
        raise UsageError("--follow, --every and --cron say when to run again: give one of them")
    if backfill and not (job or "").startswith("table:"):
        raise UsageError("--backfill makes rows of one table anew: say which, by --job table:NAME")
    asked = spark_conf(conf)
    subject = _folder(what, settings) if is_place(what) else _topology(what, settings)
    if direct:
        reports = getattr(subject.module, "reports", None)
        found = analyze(subject.tables, reports, master, plots, say=say, paths=subject.paths, conf=asked)
        for report in found.values():
            print(f"\n{render(report)}")
        return
    runs = _runs(subject, into, master, asked, catalog)
    if picture is not None:
        runs.draw(picture)
        print(f"graph: {picture}")
    if listed:
        print("\n\n".join(render(table) for table in runs.pipeline.listing()))
    if history:
        print(render(runs.history()))
    if quality:
        print(render(runs.quality()))
    if dry_run:
        print(render(runs.dry_run()))
    if listed or history or quality or dry_run or picture is not None:
        return
    if backfill:
        done = runs.backfill((job or "").partition(":")[2], backfill)
        say(
            f"table {done.name}: {done.checked:,} rows made anew, {done.rows:,} rows in all; tables that read it follow with the next run"
        )
        return
    schedule = _schedule(follow, every, cron, subject)
    if schedule is None:
        _show(runs, runs.run(job, full, retries, time.sleep), plots)
        return
    once = lambda: _show(runs, runs.run(job, full, retries, time.sleep), plots)
    repeat_runs(runs, schedule, once, subject.code, time.time, time.sleep)


def _show(runs: Runs, outcome: Outcome, plots: str | None) -> None:
    """Print what a run has made."""
    from esault.spark.plot import plot
    from esault.spark.report import render

    pipeline = runs.pipeline
    if not outcome.reported and not any(outcome.cleaned.values()) and not any(outcome.updated.values()):
        say(f"nothing is new; all stands in {pipeline.into} (--full does all again)")
    for one in filter(None, outcome.updated.values()):
        say(f"table {one.name}: {one.written:,} rows written, {one.rows:,} in all ({one.seconds:.1f} s)")
        for name, (action, failed) in one.expectations.items():
            if failed:
                say(f"  not as expected: {name}: {failed:,} of {one.checked:,} rows ({action})")
    for table, reasons in outcome.quarantined.items():
        print(f"\nquarantine of {table}: {sum(reasons.values()):,} rows in {pipeline.clean[table].quarantine.path}")
        print("\n".join(f"  {count:,}: {reason}" for reason, count in list(reasons.items())[:10]))
    if outcome.registered:
        say(f"in the catalog: {', '.join(one.name for one in outcome.registered)}")
        if pipeline.metastore is not None:
            say(
                f"a session has them by these settings: esault.spark.metastore({os.path.relpath(pipeline.metastore)!r})"
            )
    for report in outcome.reports.values():
        shown: ReportTable = report if plots is None else replace(report, plot=plot(report, plots))
        print(f"\n{render(shown)}")


def _schedule(follow: bool, every: float | None, cron: str | None, subject: _Subject) -> Schedule | None:
    from esault.spark.tables.schedule import AtTimes, Every, Landed

    if follow:
        return Landed(subject.tables.values())
    if every is not None:
        return Every(every)
    return None if cron is None else AtTimes(cron, time.time())


def _folder(what: str, settings: tuple[str, ...]) -> _Subject:
    from esault.spark.analyze import tables_in

    if settings:
        raise UsageError(f"--set is for a topology, and {what} is a folder")
    tables = tables_in(what)
    alone = [folder.rstrip("/") for folder in tables.values()] == [what.rstrip("/")]
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


def _code(folder: str) -> dict[str, str]:
    """Return hashes of the topology file, and of the modules from its folder that it imports."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = sorted(f for f in files if f and os.path.dirname(os.path.abspath(f)) == os.path.abspath(folder))
    return {file: hash_of(file) for file in own}


def _runs(subject: _Subject, into: str | None, master: str | None, conf: dict[str, str], catalog: str | None) -> Runs:
    from esault.spark.analyze import beside
    from esault.spark.elasticity import is_of_runs
    from esault.spark.elasticity import reports as reports_of_runs
    from esault.spark.jobs import Rules
    from esault.spark.tables.declared import Tables
    from esault.spark.tables.runs import Runs

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
        into = os.path.normpath(os.path.relpath(os.path.join(beside(subject.tables), "analytics", subject.name)))
    code = hashlib.sha256("".join(subject.code.values()).encode()).hexdigest()[:16] if subject.code else ""
    rules = Rules(reports, said["expectations"], said["partition_by"], code)
    tables = None
    if callable(declare := getattr(subject.module, "pipeline", None)):
        tables = Tables(subject.tables)
        declare(tables)
    options = {"master": master, "say": say, "paths": subject.paths, "conf": conf, "catalog": catalog}
    return Runs(subject.name or "tables", subject.tables, into, rules, tables, **options)
