"""`esault analyze`."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from esault.cli.topology_argument import params_of, place_of, set_option
from esault.errors import UsageError

__all__ = ["command"]


@click.command("analyze")
@click.argument("what", metavar="TOPOLOGY|DIR")
@set_option
@click.option("--plot", "plots", type=click.Path(), help="Draw what can be drawn, as PNG files into this folder.")
@click.option("--master", help="URL of a Spark cluster; without it Spark runs here.")
def command(what: str, settings: tuple[str, ...], plots: str | None, master: str | None) -> None:
    """Spark's report on the tables that TOPOLOGY has landed, or that stand in DIR.

    What is reported is said by the topology file's `reports(tables)`; without one, what can be said of any table.
    """
    from esault.spark.analyze import analyze, render, tables_in

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    tables: dict[str, Any]
    reports = None
    paths: list[str] = []
    if os.path.isdir(what):
        if settings:
            raise UsageError(f"--set is for a topology, and {what} is a folder")
        tables = dict(tables_in(what))
    else:
        place = place_of(what)
        from esault.sinks.landing.table import LandedTable

        plan = place.build(params_of(place, settings)).plan()
        tables = {s.name: s.sink for s in plan.sinks if isinstance(s.sink, LandedTable)}
        if not tables:
            raise UsageError(f"{what} lands no table: give it a SparkTable sink, or name a folder with landed tables")
        reports = getattr(place.load_module(), "reports", None)
        paths = [place.folder]
    for name, report in analyze(tables, reports, master, plots, say=say, paths=paths).items():
        print(f"\n{name}\n{render(report)}")
