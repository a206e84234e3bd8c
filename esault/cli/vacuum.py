"""`esault vacuum`."""

from __future__ import annotations

import os

import click

from esault.cli.finite_range import FiniteRange
from esault.cli.spark_session import say, spark_session
from esault.counters import counted

__all__ = ["command"]


@click.command("vacuum")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--keep",
    type=FiniteRange(min=0),
    default=7.0,
    metavar="DAYS",
    help="Versions of so many days stay.  [default: 7]",
)
@click.option("--force", is_flag=True, help="Less than 7 days, where a run has not ended that may be resumed.")
@click.option("--master", help="URL of a Spark cluster with Delta Lake's jar, which does it for Delta's tables.")
@click.option("--conf", metavar="KEY=VALUE", multiple=True, help="With --master: a setting of Spark. May be repeated.")
def command(folders: tuple[str, ...], keep: float, force: bool, master: str | None, conf: tuple[str, ...]) -> None:
    """Remove files of tables that no version of the last days has: replaced ones, and those of runs that died.

    DIR is a table's folder, or one with tables below it. What was the table at any time of the last --keep days can be
    read afterwards, by `esault.read(path, version=N)`.

    \b
    esault vacuum out/sales               versions of a week stay
    esault vacuum out/analytics --keep 1  of a day
    """
    from esault.spark.tables.upkeep import Upkeep, is_ours, tables_below

    tables = tables_below(folders)
    if master is not None and all(map(is_ours, tables)):
        say("no table here is Delta Lake's alone: Spark is not started")
        master, conf = None, ()
    with spark_session("esault vacuum", master, conf) as spark:
        upkeep = Upkeep(spark, say)
        for table in tables:
            removed = upkeep.vacuum(table, keep * 86400, force)
            print(f"{os.path.relpath(table)}: {counted(removed, 'file')} removed")
