"""`esault status`."""

from __future__ import annotations

import json
from typing import Any

import click

from esault.cli.running_option import run_option

__all__ = ["command"]


@click.command("status")
@run_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def command(run: str | None, as_json: bool) -> None:
    """Show a running topology: its units, how many sub-units each has, what waits, what was decided of late.

    Without --run and with several running, each is shown.
    """
    from esault.runtime.doors import choose, running

    found = running()
    chosen = found if run is None and len(found) > 1 else [choose(run)]
    for each in chosen:
        print(json.dumps(each.status) if as_json else "\n".join(_lines(each.status)))


def _lines(status: dict[str, Any]) -> list[str]:
    """A table for people."""
    state = "ending" if status.get("draining") else status["phase"]
    head = f"{status['topology']}: {state} for {status.get('seconds', 0):.1f} s, process {status['pid']}, run {status['run']}"
    if status.get("slots"):
        head += f", {status['free_slots']} of {status['slots']} slots free"
    if status.get("checkpoint"):
        head += f", checkpoint {status['checkpoint']}"
    if status.get("restores"):
        head += f", went back {status['restores']} times"
    rows = [("unit", "kind", "sub-units", "in", "out", "waiting", "errors", "p50 ms", "p99 ms")]
    rows += [
        (
            u["name"],
            u["kind"],
            str(u["sub_units"]),
            f"{u['tuples_in']:,}",
            f"{u['tuples_out']:,}",
            f"{u['backlog']:,}",
            f"{u['errors']:,}",
            f"{u['p50_ms']:.2f}",
            f"{u['p99_ms']:.2f}",
        )
        for u in status["units"]
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    table = [
        "  " + "  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
        for row in rows
    ]
    return [head, *table, *(f"  {line}" for line in status.get("scaling", ()))]
