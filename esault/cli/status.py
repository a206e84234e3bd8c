"""`esault status`."""

from __future__ import annotations

from typing import Any

import click

from esault.cli.running_option import run_argument
from esault.counters import UnitCounts, counted, declared
from esault.payload.json_text import strict_json

__all__ = ["command"]

#: columns that are there also where all is well
_ALWAYS = ("dropped", "late", "errors")


@click.command("status")
@run_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def command(run: str | None, as_json: bool) -> None:
    """Show a running topology: its units, how many sub-units each has, what waits, what was decided of late.

    Without RUN and with several running, each is shown.
    """
    from esault.runtime.session.control_client import choose, running, silent

    found = running() if run is None else []
    for each in found or [choose(run)]:
        print(strict_json(each.status) if as_json else "\n".join(_lines(each.status)))
    for topology, id in silent(found) if found else ():
        click.echo(f"{topology} ({id}) does not answer just now: it is starting, ending, or stands still", err=True)


def _lines(status: dict[str, Any]) -> list[str]:
    """A table for people."""
    state = "ending" if status.get("draining") else status["phase"]
    head = f"{status['topology']}: {state} for {status.get('seconds', 0):.1f} s, process {status['pid']}, run {status['run']}"
    if status.get("slots"):
        head += f", {status['free_slots']} of {status['slots']} slots free"
    if status.get("checkpoint"):
        head += f", checkpoint {status['checkpoint']}"
    if status.get("restores"):
        head += f", went back {counted(status['restores'], 'time')}"
    trouble = [
        name
        for name, each in declared(UnitCounts).items()
        if each.trouble and (name in _ALWAYS or any(u.get(name) for u in status["units"]))
    ]
    words = [name.replace("_", " ") for name in trouble]
    rows = [("unit", "kind", "sub-units", "in", "out", "waiting", *words, "p50 ms", "p99 ms")]
    rows += [
        (
            u["name"],
            u["kind"],
            f"in {u['chained_to']}" if u.get("chained_to") else str(u["sub_units"]),
            f"{u['tuples_in']:,}",
            f"{u['tuples_out']:,}",
            f"{u['backlog']:,}",
            *(f"{u.get(name, 0):,}" for name in trouble),
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
    marks = [
        f"  {u['name']}: watermark {status['now'] - u['watermark']:,.1f} s behind the clock"
        for u in status["units"]
        if u["watermark"] is not None
    ]
    split = [
        f"  {unit}: key {key} is hot, and split over {over} sub-units by {u['name']}"
        for u in status["units"]
        for unit, keys in u.get("split_keys", {}).items()
        for key, over in keys.items()
    ]
    return [head, *table, *marks, *split, *_hosts(status), *(f"  {line}" for line in status.get("scaling", ()))]


def _by(priority: int | None) -> str:
    return " for itself" if priority is None else f" at priority {priority}"


def _hosts(status: dict[str, Any]) -> list[str]:
    """A line for each host of a run on several: slots, who is there, what went to the others."""
    lines = []
    for name, host in status.get("hosts", {}).items():
        sent = ", ".join(f"{amount / 1e6:,.1f} MB to {other}" for other, amount in sorted(host["sent"].items()))
        lines.append(
            f"  host {name}: {'draining, ' if host['draining'] else ''}{host['free']} of {host['slots']} slots free"
            + (f", {100 * host['cpu']:.0f} % busy" if host["cpu"] is not None else "")
            + f"; {' '.join(host['sub_units']) or 'none'}"
            + (f"; sent {sent}" if sent else "")
            + "".join(f"; {of} has {slots}{_by(priority)}" for of, priority, slots in host.get("others", ()))
        )
    return lines
