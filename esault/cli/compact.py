"""`esault compact`."""

from __future__ import annotations

import os

import click

from esault.cli.finite_range import FiniteRange
from esault.cli.spark_session import say, spark_session
from esault.counters import counted

__all__ = ["command"]


@click.command("compact")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--target-mb",
    type=FiniteRange(min=0, min_open=True),
    default=64.0,
    help="Size of the new files.  [default: 64]",
)
@click.option(
    "--drop-repeats",
    is_flag=True,
    help="Leave out rows that a replay has landed again, where both come into one new file.",
)
@click.option("--master", help="URL of a Spark cluster, whose executors rewrite; without it this process does.")
@click.option("--conf", metavar="KEY=VALUE", multiple=True, help="With --master: a setting of Spark. May be repeated.")
def command(
    folders: tuple[str, ...], target_mb: float, drop_repeats: bool, master: str | None, conf: tuple[str, ...]
) -> None:
    """Put small files of tables together: of landed ones, of a pipeline's, of Delta Lake's.

    DIR is a table's folder, or one with tables below it. A run may go on landing meanwhile, and readers reading: the
    rows stay the same, in fewer files. A command that is killed has put some files together and not the others. Files
    that were replaced stay until `esault vacuum`, for readers and for older versions.

    \b
    esault compact out/sales                                 in this process
    esault compact out --master spark://host:7077            by a cluster's executors
    """
    from esault.spark.tables.upkeep import Upkeep, tables_below

    tables = tables_below(folders)
    with spark_session("esault compact", master, conf) as spark:
        upkeep = Upkeep(spark, say)
        for table in tables:
            done = upkeep.compact(table, round(target_mb * 2**20), drop_repeats)
            repeats = f", {counted(done.duplicates, 'repetition')} left out" if done.duplicates else ""
            print(f"{os.path.relpath(table)}: {counted(done.before, 'file')} before, {done.after:,} now{repeats}")
